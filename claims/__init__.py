"""Every claim about learning, and whether it holds beyond the runs that it was made of.

claim        what a claim is, and the settings it is varied in
replication  one claim in one variation: the effect, its standard error, the verdict
ledger       all claims; run, stored, resumed: `python3 -m claims`
table        the stored results as text and as a page of the website
experiments  runs that several claims are made of
after_start  runs from a policy that knows something
short_world  the responses of the exact claims
preferences  a reward learned from pairs, what climbs it, and DPO
nb03, ...    the claims of a notebook
"""
