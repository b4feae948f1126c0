/* A search result shows words of the page's text: no buttons, and no raw TeX. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const { htmlToText } = Search;
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    page.querySelectorAll(".math").forEach((formula) => formula.replaceWith("…"));
    const article = page.querySelector("article.bd-article");
    if (article) page.querySelector("main").replaceChildren(article);
    return htmlToText(page.documentElement.outerHTML, anchor).replace(/\s+/g, " ");
  };
});
