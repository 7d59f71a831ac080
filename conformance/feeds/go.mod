// Modules that carry what the suite reads: records of Go's database, and the schema. Nothing is built of them.
module bowline/conformance/feeds

go 1.24

require (
	github.com/ossf/osv-schema v1.9.0
	golang.org/x/vuln v1.9.0
)
