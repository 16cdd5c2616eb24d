# scripts/layers: reads code as c-code.awk leaves it, then the list of undefined symbols;
# prints one line for each violation.  `layers` is lib/LAYERS, `banned` lines "NAME WHERE".
function room_of(path,   part) {
	return split(path, part, "/") > 2 && part[1] == "lib" ? part[2] : ""
}

function allowed(name, file,   i) {
	for (i = 1; i <= where_count[name]; i++)
		if (file == where[name, i] || index(file, where[name, i] "/") == 1)
			return 1
	return 0
}

# Only the programs may end their own process; what prints is banned in lib/ alone.
function forbidden(name, file) {
	if (!(name in where_count) || allowed(name, file))
		return 0
	return room_of(file) != "" || where[name, 1] == "-"
}

function owner_broken(name, file,   prefix) {
	for (prefix in owner)
		if (index(name, prefix) == 1 && room_of(file) != owner[prefix])
			return owner[prefix]
	return ""
}

function check_include(file, line,   name, from, to) {
	name = line
	sub(/^[ \t]*#[ \t]*include[ \t]*"/, "", name)
	sub(/".*/, "", name)
	from = room_of(file)
	to = room_of(name)
	if (name !~ /^lib\//) {
		print file ":" FNR ": includes \"" name "\": name it from the top, lib/ROOM/..."
		return
	}
	if (!(to in rank)) {
		print file ":" FNR ": includes " name " of a room that lib/LAYERS does not have"
		return
	}
	if (from != "" && from != to && rank[to] >= rank[from])
		print file ":" FNR ": " from " may not include " name ": " to " is not below it"
}

function check_words(file, text,   name, broken, rest, before, used) {
	rest = text
	while (match(rest, /[A-Za-z_][A-Za-z0-9_]*/)) {
		name = substr(rest, RSTART, RLENGTH)
		before = RSTART > 1 ? substr(rest, RSTART - 1, 1) : ""
		rest = substr(rest, RSTART + RLENGTH)
		broken = owner_broken(name, file)
		if (broken != "")
			print file ":" FNR ": uses " name ", which is for lib/" broken " alone"
		# A member (x->exit) is not the function.
		if (before == "." || before == ">")
			continue
		used = name ~ /^std(out|err)$/ || rest ~ /^[ \t]*\(/
		if (used && forbidden(name, file))
			print file ":" FNR ": uses " name
	}
}

BEGIN {
	while ((getline line < layers) > 0) {
		sub(/#.*/, "", line)
		n = split(line, word, /[ \t]+/)
		if (n == 0 || word[1] == "")
			continue
		if (word[1] == "only") {
			owner[word[2]] = word[3]
			continue
		}
		height++
		for (i = 1; i <= n; i++)
			if (word[i] != "")
				rank[word[i]] = height
	}
	n = split(banned, line_of, "\n")
	for (i = 1; i <= n; i++)
		if (split(line_of[i], word, " ") == 2)
			where[word[1], ++where_count[word[1]]] = word[2]
	limit = 60
}

FILENAME ~ /\/symbols$/ {
	if (owner_broken($2, $1) != "")
		print $1 ": links " $2 ", which is for lib/" owner_broken($2, $1) " alone"
	if (forbidden($2, $1))
		print $1 ": links " $2
	next
}

FNR == 1 {
	opened = 0
	if (room_of(FILENAME) != "" && !(room_of(FILENAME) in rank))
		print FILENAME ": lib/LAYERS has no room " room_of(FILENAME)
}

/^[ \t]*#[ \t]*include[ \t]*"/ { check_include(FILENAME, $0); next }
/^[ \t]*#[ \t]*include/ { next }

{ check_words(FILENAME, $0) }

/^{/ { opened = FNR }
/^}/ {
	if (opened && FNR - opened + 1 > limit)
		print FILENAME ":" opened ": a function of " FNR - opened + 1 " lines; the most is " limit
	opened = 0
}
