"""The exercises, a file a notebook; `grpo_course.classroom.check` says what one is."""
