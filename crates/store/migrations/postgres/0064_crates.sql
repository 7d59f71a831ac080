-- Names of crates in any case, and with - for each _, of which one crate alone may have one.
CREATE INDEX hosted_files_by_crate ON hosted_files (replace(lower(package), '_', '-'), repository);
CREATE INDEX upstream_files_by_crate ON upstream_files (upstream, replace(package, '_', '-'));
-- Records of crates are found by names in lower case; versions that were matched by others are matched again.
UPDATE record_affects SET package = lower(package)
WHERE package >= 'crates' || '.io/' AND package < 'crates' || '.io0' AND package <> lower(package)
  AND NOT EXISTS (SELECT 1 FROM record_affects o WHERE o.record = record_affects.record
                    AND lower(o.package) = lower(record_affects.package) AND o.package <> record_affects.package);
UPDATE package_versions SET record_package = lower(record_package), state = CASE state WHEN 0 THEN 1 ELSE state END
WHERE record_package >= 'crates' || '.io/' AND record_package < 'crates' || '.io0';
-- Reports of malware about crates and modules are read out of the records again.
UPDATE record_sources SET malware_generation = 0, malware_after = '';
