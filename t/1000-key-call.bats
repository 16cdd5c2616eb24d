# rv-key for one call: the derivations, and what is a usage error.
load helper

key() {
	rv-key --run-id r --agent-seq 1 --ordinal 2 --tool x "$@"
}

# The canonical text is written out here, so that sha256sum is the judge.
sha() {
	printf '%s' "$1" | sha256sum | cut -d' ' -f1
}

@test "derivation 1 is the hash of five members in canonical form" {
	rv_equal "$(sha '{"agentSeq":1,"args":{"a":[],"b":1},"ordinal":2,"runId":"r","tool":"x"}')" \
		"$(key --derivation 1 --args '{"b":1.0, "a":[]}')"
}

@test "derivation 2 is the default and has the genesis in it" {
	want=$(sha '{"agentSeq":1,"args":{},"derivation":2,"genesis":"g","ordinal":2,"runId":"r","tool":"x"}')
	rv_equal "$want" "$(key --genesis g --args '{}')"
	rv_equal "$want" "$(key --genesis g --derivation 2 --args '{}')"
}

@test "an empty genesis is a value" {
	rv_equal "$(sha '{"agentSeq":1,"args":{},"derivation":2,"genesis":"","ordinal":2,"runId":"r","tool":"x"}')" \
		"$(key --genesis '' --args '{}')"
}

@test "names are escaped as JSON.stringify does" {
	rv_equal "$(sha '{"agentSeq":0,"args":null,"ordinal":9007199254740991,"runId":"\"é\u001f","tool":"\\n"}')" \
		"$(rv-key --derivation 1 --run-id $'"é\x1f' --agent-seq 0 --ordinal 9007199254740991 --tool '\n' --args null)"
}

@test "arguments come from a file or from standard input" {
	want=$(key --genesis g --args '{"a":1}')
	echo '{"a":1}' >args.json
	rv_equal "$want" "$(key --genesis g --args-file args.json)"
	rv_equal "$want" "$(key --genesis g --args-file - <args.json)"
}

@test "every vector: key 1, key 2 and argsHash" {
	rv_need perl
	# each vector twice as a line, and what it must become
	perl -MJSON::PP -e '
		open my $vectors, "<", "$ENV{RV_SRC}/t/vectors/keys.jsonl" or die;
		open my $in, ">:raw", "in.jsonl"; open my $want, ">:raw", "want.jsonl";
		my $json = JSON::PP->new->utf8->allow_nonref->canonical;
		my $n = 0;
		while (<$vectors>) {
			my ($args) = /"argsText":("(?:[^"\\]|\\.)*")/ or die;
			my $v = $json->decode($_);
			my $text = JSON::PP->new->allow_nonref->decode($args);
			$text =~ s/\n/ /g;
			for my $d (1, 2) {
				my %m = (runId => $v->{runId}, tool => $v->{tool}, agentSeq => $v->{agentSeq}, ordinal => $v->{ordinal});
				$m{genesis} = $v->{genesis} if $d == 2;
				my $line = $json->encode({%m, execKeyDerivation => $d});
				$line =~ s/\}\z/,"args":$text}/;
				print $in "$line\n";
				$n++;
				print $want defined $v->{v1}
					? qq({"idempotencyKey":"$v->{"v$d"}","argsHash":"$v->{argsHash}","derivation":$d}\n)
					: qq({"ok":false,"error":{"code":"number","message":"args: a number overflows a double"},"line":$n}\n);
			}
		}' </dev/null
	[ "$(wc -l <in.jsonl)" -eq 600 ]
	rv_fails 3 rv-key --stream <in.jsonl >got.jsonl
	cmp want.jsonl got.jsonl
	rv_fails 3 rv-key --stream --threads 3 <in.jsonl >got.jsonl
	cmp want.jsonl got.jsonl
}

@test "a key does not depend on directory, environment, time zone or locale" {
	want=$(key --genesis g --args '{"x":[1.5,1e21,"é"]}')
	mkdir elsewhere
	rv_equal "$want" "$(cd elsewhere && LC_ALL=de_DE.UTF-8 LC_NUMERIC=de_DE.UTF-8 TZ=Asia/Tokyo LANG=tr_TR \
		rv-key --run-id r --agent-seq 1 --ordinal 2 --tool x --genesis g --args '{"x":[1.50,1000000000000000000000,"\u00e9"]}')"
}

@test "what is refused is exit 3 with a reason, and nothing on stdout" {
	for args in '' '{' '{}{}' "{'a':1}" '[1,]' '[NaN]' '1e400' '"a'; do
		rv_fails 3 key --genesis g --args "$args" >out 2>err
		[ ! -s out ]
		grep -q '^rv-key: --args: ' err
		[ "$(wc -l <err)" -eq 1 ]
	done
}

@test "--strict refuses what canonical form merges" {
	for args in '{"a":1,"a":1}' '{"a":1,"\u0061":2}' '"\ud800"' '9007199254740993'; do
		key --genesis g --args "$args"
		rv_fails 3 key --genesis g --strict --args "$args"
	done
	key --genesis g --strict --args '{"a":{"b":1},"b":[18446744073709551616,"\ud83d\ude00"]}'
}

@test "usage errors" {
	rv_fails 2 rv-key
	rv_fails 2 key --args '{}'
	rv_fails 2 key --derivation 2 --args '{}'
	rv_fails 2 key --derivation 1 --genesis g --args '{}'
	rv_fails 2 key --derivation 3 --genesis g --args '{}'
	rv_fails 2 key --genesis g
	rv_fails 2 key --genesis g --args 1 --args-file f
	rv_fails 2 key --genesis g --args 1 operand
	rv_fails 2 key --genesis g --args 1 --run f
	rv_fails 2 key --genesis g --args 1 --stream
	rv_fails 2 key --genesis g --args 1 --recorded
	rv_fails 2 key --genesis g --args 1 --threads 2
	rv_fails 2 rv-key --genesis g --run-id r --agent-seq 1 --ordinal 2 --args 1
	for n in -1 1.0 9007199254740992 '' x 1e3 ' 1' +1; do
		rv_fails 2 rv-key --genesis g --run-id r --tool x --agent-seq 1 --ordinal "$n" --args 1
	done
	rv_fails 2 key --genesis $'\xff' --args 1
	rv_fails 2 rv-key --stream --canonical
	rv_fails 2 rv-key --stream file
	rv_fails 2 rv-key --stream --threads 0
	rv_fails 2 rv-key --canonical a b
	rv_fails 2 rv-key --new-run
	rv_fails 2 rv-key --run-id r --canonical
}

@test "a missing arguments file is exit 5" {
	rv_fails 5 key --genesis g --args-file none
	rv_fails 5 key --genesis g --args-file .
}
