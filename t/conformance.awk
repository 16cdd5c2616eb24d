# The checks of `rv-conform --list --format jsonl`, as rv-conformance(7) has them.  The page is held to it
# by t/6060-conform-pages.bats; after a change: rv-conform --list --format jsonl | awk -f t/conformance.awk
function text(name,   at, out) {
	at = index($0, "\"" name "\":\"")
	if (at == 0)
		return ""
	out = substr($0, at + length(name) + 4)
	match(out, /([^"\\]|\\.)*/)
	out = substr(out, 1, RLENGTH)
	gsub(/\\"/, "\"", out)
	return out
}

# A sentence begins a line, as mdoc wants it, and no line is longer than 78 characters.
function sentences(out,   n, words, i, line) {
	n = split(out, words, " ")
	line = ""
	for (i = 1; i <= n; i++) {
		if (line != "" && (length(line) + 1 + length(words[i]) > 78 || line ~ /\.$/)) {
			print line
			line = ""
		}
		line = line == "" ? words[i] : line " " words[i]
	}
	print line
}

function reference(clause,   page, section, rest) {
	page = clause
	sub(/\(.*/, "", page)
	section = clause
	sub(/^[^(]*\(/, "", section)
	sub(/\).*/, "", section)
	rest = clause
	if (!sub(/^[^,]*, /, "", rest))
		return page " " section
	if (rest ~ /^--/)
		return page " " section " , Fl " substr(rest, 2)
	return page " " section " , No " rest
}

function needs(   at, out) {
	at = index($0, "\"needs\":[")
	out = substr($0, at + 9)
	sub(/\].*/, "", out)
	gsub(/"/, "", out)
	gsub(/,/, ", ", out)
	return out
}

{
	suite = text("suite")
	if (suite != last) {
		if (last != "")
			print ".El"
		print ".Ss The suite " suite
		print ".Bl -tag -width Ds"
	}
	last = suite
	print ".It Li " text("id")
	print ".Em " text("title") " ."
	sentences(text("promise"))
	sentences(text("why"))
	print ".Pq Xr " reference(text("clause"))
	if (needs() != "")
		print "Needs: " needs() "."
}
END { print ".El" }
