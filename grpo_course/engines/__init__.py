"""The bridge to the production trainers: names, losses and runs of TRL."""
