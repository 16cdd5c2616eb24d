# The layers of lib/ hold, and the check that says so can fail.
load helper

@test "the source keeps its layers" {
	"$RV_SRC/scripts/layers"
}

@test "so do the symbols of the objects" {
	"$RV_SRC/scripts/layers" --objects "$RV_BIN"
}

# A small tree that is clean, to plant one violation at a time in.
plant_tree() {
	mkdir -p tree/lib/base tree/lib/json tree/lib/digest tree/lib/process tree/lib/cli tree/cmd
	cp "$RV_SRC/lib/LAYERS" tree/lib/
	echo 'int rv_a(void);' >tree/lib/base/a.h
	echo 'int rv_j(void);' >tree/lib/json/j.h
	printf '%s\n' '#include "lib/base/a.h"' '/* printf( and yajl_alloc in a comment */' \
		'int rv_j(void)' '{' '	return "system(exit(1))"[0];' '}' >tree/lib/json/j.c
	printf '%s\n' '#include "lib/json/j.h"' 'int main(void)' '{' '	return rv_j();' '}' >tree/cmd/rv-x.c
}

# planted FILE EXPECTED: the tree with what is on stdin appended to FILE is refused, and for that.
planted() {
	local said

	plant_tree
	"$RV_SRC/scripts/layers" tree
	cat >>"tree/$1"
	rv_fails 1 "$RV_SRC/scripts/layers" tree >said.txt
	said=$(cat said.txt)
	[[ $said == "$1"*"$2"* ]] || rv_die "not for that: $said"
	rv_equal 1 "$(wc -l <said.txt)" "lines said"
}

@test "an include upwards is caught" {
	planted lib/base/a.h 'base may not include lib/json/j.h' <<<'#include "lib/json/j.h"'
}

@test "an include sideways is caught" {
	planted lib/digest/d.c 'digest may not include lib/json/j.h' <<<'#include "lib/json/j.h"'
}

@test "an include by another name than from the top is caught" {
	planted lib/json/j.c 'name it from the top' <<<'#include "j.h"'
}

@test "a room that LAYERS does not have is caught" {
	plant_tree
	mkdir tree/lib/attic
	echo 'int rv_z;' >tree/lib/attic/z.c
	rv_fails 1 "$RV_SRC/scripts/layers" tree >said.txt
	grep -q 'lib/attic/z.c: lib/LAYERS has no room attic' said.txt
}

@test "a symbol of another room is caught" {
	planted lib/digest/d.c 'uses yajl_alloc' <<<'void *p = yajl_alloc(0, 0, 0);'
}

@test "a room of lib that prints is caught" {
	planted lib/json/j.c 'uses printf' <<<'int f(void) { return printf("x"); }'
}

@test "a room of lib that exits is caught" {
	planted lib/json/j.c 'uses exit' <<<'void f(void) { exit(1); }'
}

@test "a stream of the standard ones is caught" {
	planted lib/json/j.c 'uses stderr' <<<'void f(void) { fwrite("x", 1, 1, stderr); }'
}

@test "_exit is for the children of lib/process" {
	planted lib/json/j.c 'uses _exit' <<<'void f(void) { _exit(1); }'
	rm -r tree
	plant_tree
	echo 'void f(void) { _exit(1); }' >tree/lib/process/p.c
	"$RV_SRC/scripts/layers" tree
}

@test "a forbidden function is caught in the programs too" {
	planted cmd/rv-x.c 'uses system' <<<'int f(void) { return system("true"); }'
}

@test "a function of 61 lines is caught, one of 60 is not" {
	{ echo 'int f(void)'; echo '{'; yes '	;' | head -n 58; echo '}'; } >long.c
	plant_tree
	cat long.c >>tree/lib/json/j.c
	"$RV_SRC/scripts/layers" tree
	rm -r tree
	sed '3i\	;' long.c >longer.c
	planted lib/json/j.c 'a function of 61 lines' <longer.c
}

@test "a symbol that only the object shows is caught" {
	rv_need cc
	plant_tree
	printf '#define HIDDEN(x) sys##x\nint f(void);\nint f(void)\n{\n\treturn HIDDEN(tem)("true");\n}\n' >tree/lib/json/h.c
	"$RV_SRC/scripts/layers" tree
	mkdir -p objects/lib/json
	cc -w -c -o objects/lib/json/h.o tree/lib/json/h.c
	rv_fails 1 "$RV_SRC/scripts/layers" --objects objects tree >said.txt
	rv_equal 'lib/json/h.c: links system' "$(cat said.txt)"
}

@test "a tree without code is no clean tree" {
	mkdir -p none/lib
	cp "$RV_SRC/lib/LAYERS" none/lib/
	rv_fails 5 "$RV_SRC/scripts/layers" none
}
