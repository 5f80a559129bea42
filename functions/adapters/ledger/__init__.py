"""The ledger: each ingestion, the groups they share, and notes of the service, in DynamoDB."""
