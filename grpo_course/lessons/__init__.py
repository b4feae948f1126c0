"""What belongs to one notebook each.

exercises        tasks, cases, and mistakes with their hints
pictures         what is drawn in that notebook alone; `shared` in several
hunt             the trainer of notebook 10, its defects, probes and cases
one_prompt       the films of 00 and 02: one policy learns one prompt
silent_runs      the five runs of exercise 7.5
own_task_seeds   notebook 15's task to copy, recorded with five seeds
"""
