"""Files for the landing bucket: uploads, and existing files of other buckets."""
