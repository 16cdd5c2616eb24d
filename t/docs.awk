# The options and the exit statuses of a page (mdoc) or of --help, one a line, the same for both:
# "option -h, --help", "option --timeout DUR", "status 4".
FNR == 1 { page = $0 ~ /^\.Dd/; section = "" }

page && /^\.Sh/ { section = $0 == ".Sh OPTIONS" ? "options" : $0 == ".Sh EXIT STATUS" ? "statuses" : ""; next }
page && section == "options" && /^\.It Fl/ {
	line = $0
	sub(/^\.It /, "", line)
	gsub(/ , /, ", ", line)
	gsub(/Fl /, "-", line)
	gsub(/(Ar|Cm) /, "", line)
	print "option " line
}
page && section == "statuses" && /^\.It [0-9]/ {
	line = $0
	while (match(line, /[0-9]+/)) {
		print "status " substr(line, RSTART, RLENGTH)
		line = substr(line, RSTART + RLENGTH)
	}
}

!page && /^Exit status:/ { section = "statuses"; next }
!page && section == "" && /^  (-.,|   ) --[a-z]/ {
	line = $0
	sub(/^ +/, "", line)
	sub(/  +.*/, "", line)
	print "option " line
}
!page && section == "statuses" && /^  [0-9]/ {
	line = $0
	sub(/^ +/, "", line)
	sub(/  +.*/, "", line)
	while (match(line, /^[ ,]*[0-9]+/)) {
		number = substr(line, RSTART, RLENGTH)
		gsub(/[ ,]/, "", number)
		print "status " number
		line = substr(line, RSTART + RLENGTH)
	}
}
