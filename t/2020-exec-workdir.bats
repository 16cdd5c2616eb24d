# rv-exec: a fresh workdir for each dispatch, and nothing of it afterwards.
load helper
load exec

@test "the tool starts in an empty directory of its own, 0700, under the base" {
	tool where <<-'TOOL'
		#!/bin/sh
		printf '["%s","%s","%s"]' "$(pwd -P)" "$(stat -c %a .)" "$(ls -A)"
	TOOL
	x -- "$PWD/where" >one
	x -- "$PWD/where" >two
	[[ $(cat one) =~ ^\[\"$(pwd -P)/dirs/rulvar-exec-t-[A-Za-z0-9]{6}\",\"700\",\"\"\]$ ]]
	rv_fails 1 cmp -s one two
	no_workdir
}

@test "a caller's umask takes nothing from it" {
	mkdir dirs
	rv_equal '"700"' "$(umask 0777; x -- /bin/sh -c ': >file && printf \"%s\" "$(stat -c %a .)"')"
	no_workdir
}

@test "the base is TMPDIR, else /tmp, and it must be a directory" {
	mkdir tmp
	rv_equal "\"$(pwd -P)/tmp\"" "$(TMPDIR=$PWD/tmp rv-exec --tool t -- /bin/sh -c 'printf \"%s\" "${PWD%/*}"')"
	rv_equal '"/tmp"' "$(TMPDIR='' rv-exec --tool t -- /bin/sh -c 'printf \"%s\" "${PWD%/*}"')"
	fails config 125 rv-exec --tool t --workdir-base /nonexistent -- /bin/true
	: >file
	fails config 125 rv-exec --tool t --workdir-base file -- /bin/true
	[ -z "$(ls -A tmp)" ]
}

@test "a base that cannot be written to is config, and nothing ran" {
	tool mark <<-TOOL
		#!/bin/sh
		: >"$PWD/ran"
	TOOL
	mkdir closed
	if [ "$(id -u)" -eq 0 ]; then
		fails config 125 rv-exec --tool t --workdir-base /proc/self -- "$PWD/mark"
	else
		chmod 555 closed
		fails config 125 rv-exec --tool t --workdir-base closed -- "$PWD/mark"
	fi
	[ ! -e ran ]
}

@test "a relative base is made absolute, and a link to it is followed" {
	mkdir real
	ln -s real link
	rv_equal "\"$(pwd -P)/real\"" "$(rv-exec --tool t --workdir-base link -- /bin/sh -c 'printf \"%s\" "${PWD%/*}"')"
	rv_equal '' "$(ls -A real)"
}

@test "a tool's name is reduced to safe characters" {
	mkdir dirs
	for name in '../../etc/x' $'a\nb' 'ä' '-rf' '.' "$(printf 'n%.0s' {1..300})"; do
		dir=$(rv-exec --tool "$name" --workdir-base dirs -- /bin/sh -c 'printf \"%s\" "$PWD"')
		dir=${dir//\"/}
		rv_equal "$(pwd -P)/dirs" "${dir%/*}"
		[[ ${dir##*/} =~ ^rulvar-exec-[A-Za-z0-9._-]{1,64}-[A-Za-z0-9]{6}$ ]]
	done
	no_workdir
}

@test "what a tool leaves is removed: closed directories, links, odd names, special files" {
	mkdir home
	: >home/precious
	tool litter <<-TOOL
		#!/usr/bin/perl
		use POSIX;
		mkdir "closed";
		mkdir "closed/deep";
		mkdir "closed/deep/er";
		open my \$f, ">", "closed/deep/file";
		chmod 0, "closed/deep/file", "closed/deep/er", "closed/deep", "closed";
		symlink "$PWD/home", "home";
		symlink "$PWD/home", "closed2";
		symlink "/nonexistent", "dangling";
		symlink ".", "loop";
		mkdir "-rf";
		mkdir "a\nb";
		mkdir ".rv-0";
		mkdir ".rv-1";
		open \$f, ">", ".rv-1/x";
		POSIX::mkfifo("fifo", 0600);
		link "$PWD/home/precious", "hard" if -O "$PWD/home/precious";
		open \$f, ">", "x" x 255;
		chmod 0, ".";
		print 1;
	TOOL
	rv_equal 1 "$(x -- "$PWD/litter" 2>stderr)"
	[ ! -s stderr ] || rv_die "$(cat stderr)"
	no_workdir
	[ -e home/precious ]
	rv_equal 1 "$(stat -c %h home/precious)"
}

@test "a tree 5,000 deep and one of 5,000 files are removed, in time" {
	tool deep <<-'TOOL'
		#!/usr/bin/perl
		for (1..5000) { mkdir "directory" or die; chdir "directory" or die; }
		open my $f, ">", "bottom";
		print 1;
	TOOL
	tool wide <<-'TOOL'
		#!/usr/bin/perl
		for my $d (1..10) { mkdir $d; for (1..500) { open my $f, ">", "$d/$_" or die } }
		print 1;
	TOOL
	for tree in deep wide; do
		# A slow disk may take longer than an answer waits; the removal goes on all the same.
		rv_equal 1 "$(x -- "$PWD/$tree" 2>stderr)"
		rv_fails 1 grep -v 'is still being removed$' stderr
		rv_until no_workdir 2>/dev/null
	done
}

@test "a tool that removes or moves its workdir changes no result" {
	rv_equal 1 "$(x -- /bin/sh -c 'rmdir "$PWD"; echo 1')"
	no_workdir
	rv_equal 1 "$(x -- /bin/sh -c 'mv "$PWD" ../moved; echo 1' 2>stderr)"
	rv_equal moved "$(ls dirs)"
	rmdir dirs/moved
	# A link in its place is no way to have something else removed.
	mkdir home
	: >home/precious
	rv_equal 1 "$(x -- /bin/sh -c 'rmdir "$PWD"; ln -s "'"$PWD"'/home" "$PWD"; echo 1' 2>stderr)"
	[ -e home/precious ]
	rv_equal '' "$(cat stderr)"
	no_workdir
}

@test "a workdir that cannot be removed is said, and changes no result" {
	rv_need root
	command -v chattr >/dev/null || skip "needs chattr"
	mkdir probe && chattr +i probe 2>/dev/null || skip "this file system has no immutable files"
	chattr -i probe
	rv_equal 1 "$(x -- /bin/sh -c 'mkdir held; chattr +i held 2>/dev/null; echo 1' 2>stderr)"
	grep -q 'rv-exec: .*cannot remove' stderr
	chattr -R -i dirs
}

@test "a mount that the tool left in its workdir is no way out" {
	rv_need root
	mkdir precious
	: >precious/file
	tool mounter <<-TOOL
		#!/bin/sh
		mkdir m
		mount --bind "$PWD/precious" m
		echo 1
	TOOL
	rv_equal 1 "$(x --setenv PATH="$PATH" -- "$PWD/mounter" 2>stderr)"
	[ -e precious/file ]
	[ -z "$(ls -A dirs)" ] || { umount dirs/*/m 2>/dev/null; rm -r dirs; false; }
}

@test "no tool meets the mounts of the one before it, in whatever way it changed them" {
	local i=0 change
	local changes=('mount -t tmpfs none /mnt' 'mount --bind /etc /mnt' 'mount --make-rshared /' 'mount --make-rprivate /'
		'mount -t tmpfs none /proc' 'mount -t tmpfs none "$OLDPWD"; cd /; mount -t tmpfs none /tmp' 'umount -l /proc'
		'mount --bind /usr /usr; mount -o remount,bind,ro /usr' 'mount -t tmpfs none /' 'cd "$PWD"; mount -t tmpfs none .'
		'unshare --mount mount -t tmpfs none /mnt' 'mount -t tmpfs none /mnt; umount /mnt')

	rv_need root
	contained || skip "this host lets no PID namespace be made"
	mkdir -p dirs
	tool look <<-TOOL
		#!/bin/sh
		# what is mounted, of what the other changes; others mount and unmount at other places meanwhile
		printf '"%s"' "\$(cut -d' ' -f4- /proc/self/mountinfo | grep -E '^[^ ]+ (/|/mnt|/proc|/tmp|/usr|.*/dirs/.*) ' | base64 -w 0)"
	TOOL
	tool change <<-TOOL
		#!/bin/bash
		PATH=$PATH
		eval "\$(/usr/bin/python3 -Ic 'import json, sys; print(json.load(sys.stdin)["args"])')" && echo 1
	TOOL
	for change in "${changes[@]}"; do
		i=$((i + 1))
		/usr/bin/python3 -Ic '
import json, sys
change, i, here = sys.argv[1:]
for name in "look", "change":
    print(json.dumps({"tool": name, "args": change, "spec": {"command": f"{here}/{name}"},
                      "ctx": {"runId": "r", "idempotencyKey": f"{name}{i}"}}))' "$change" "$i" "$PWD"
	done >requests
	sed 1q requests | sed 's/look1/again/' >last
	cat last >>requests
	rv-exec --stream --jobs 1 --setenv PATH="$PATH" --workdir-base "$PWD/dirs" <requests >replies 2>stderr
	rv_equal '' "$(cat stderr)"
	rv_equal "$i" "$(grep -c '"result":1' replies)" 'changes that were made'
	no_workdir
	grep -o '"result":"[^"]*' replies | cut -d'"' -f4 | sort -u >seen
	[ "$(wc -l <seen)" -eq 1 ] || rv_die "$(while read -r text; do base64 -d <<<"$text"; echo; done <seen)"
}
