# C source with comments and the insides of strings and character constants blanked, line for
# line, so that what is left can be searched as code.
{
	out = ""
	n = length($0)
	for (i = 1; i <= n; i++) {
		c = substr($0, i, 1)
		pair = substr($0, i, 2)
		if (in_comment) {
			if (pair == "*/") {
				in_comment = 0
				i++
			}
			continue
		}
		if (quote != "") {
			if (c == "\\")
				i++
			else if (c == quote) {
				out = out c
				quote = ""
			}
			continue
		}
		if (pair == "/*") {
			in_comment = 1
			out = out " "
			i++
		} else if (pair == "//") {
			break
		} else {
			# An include's name is kept: it is what the layers are about.
			if (c == "\"" && out !~ /^[ \t]*#[ \t]*include/)
				quote = c
			else if (c == "'")
				quote = c
			out = out c
		}
	}
	if (quote != "" && substr($0, n, 1) != "\\")
		quote = "" # not C that compiles; do not swallow the rest of the file
	print out
}
