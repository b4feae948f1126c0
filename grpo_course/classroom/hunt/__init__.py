"""A trainer in one file, its defects, and what finds them.

script              the healthy trainer, as public code looks
base                what it downloads: tokenizer, base model, adapter
defect, defects     what can be wrong with it, as data: defects_of_...
broken              the script with one defect, or with two
"""
