"""The GSM8K stage's decisions: configuration, problems, prompts, answers, score, statistics, watchdogs, report."""
