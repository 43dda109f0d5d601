"""The release gate: a policy, evidence records, one verdict, and its renderings. Nothing here reads or writes files."""
