# rv-key --canonical and --args-hash: the engine's own form of a document.
load helper

@test "every vector is accepted or refused as it should be, with its form" {
	rv_need perl
	perl -MJSON::PP -MMIME::Base64 -e '
		my $json = JSON::PP->new->utf8;
		open my $vectors, "<", "$ENV{RV_SRC}/t/vectors/json.jsonl" or die;
		mkdir "v";
		while (<$vectors>) {
			my ($form) = /"canonical":("(?:[^"\\]|\\.)*")/;
			my $v = $json->decode($_);
			my $kind = !$v->{accept} || (!defined $form && $v->{name} !~ /^depth/) ? "refused" : "accepted";
			open my $in, ">:raw", "v/$.-$kind" or die; print $in decode_base64($v->{inputBase64}); close $in;
			next if $kind eq "refused";
			open my $want, ">:raw", "v/$.-$kind.want" or die;
			# a lone surrogate is an escape inside the form: Perl need not hold one
			print $want defined $form ? JSON::PP->new->utf8->allow_nonref->decode($form =~ s/\\\\/\\u005c/gr) =~ s/([^\x00-\x7f])/my $c = $1; utf8::encode($c); $c/egr
				: decode_base64($v->{inputBase64});
		}'
	[ "$(find v -type f -not -name '*want*' | wc -l)" -eq 203 ]
	for file in v/*-accepted; do
		rv-key --canonical "$file" | cmp - "$file.want"
		rv_equal "$(sha256sum <"$file.want" | cut -d' ' -f1)" "$(rv-key --args-hash <"$file")"
	done
	for file in v/*-refused; do
		rv_fails 3 rv-key --canonical "$file" >out 2>err
		[ ! -s out ]
		grep -q "^rv-key: $file: " err
	done
}

@test "no newline is added, and standard input is the default" {
	printf '{"b":1,\n"a":2}\n' >in
	printf '{"a":2,"b":1}' >want
	rv-key --canonical in | cmp - want
	rv-key --canonical <in | cmp - want
	rv-key --canonical - <in | cmp - want
	rv_equal "$(sha256sum <want | cut -d' ' -f1)" "$(rv-key --args-hash in)"
}

@test "members are ordered by UTF-16 code unit" {
	# U+00E9, U+1F600, U+E000 and U+FB33 in bytes; the last two come behind every surrogate
	rv_equal $'{"z":0,"\xc3\xa9":0,"\\ud83d":0,"\\ud83dz":0,"\xf0\x9f\x98\x80":0,"\\udfff":0,"\xee\x80\x80":0,"\xef\xac\xb3":0}' \
		"$(printf '{"%s":0,"%s":0,"%s":0,"\\ud83dz":0,"\\uD83D":0,"%s":0,"z":0,"\\udfff":0}' $'\xef\xac\xb3' $'\xee\x80\x80' $'\xf0\x9f\x98\x80' $'\xc3\xa9' |
			rv-key --canonical)"
}

@test "--strict" {
	echo '{"a":1,"a":2}' >in
	rv_equal '{"a":2}' "$(rv-key --canonical in)"
	rv_fails 3 rv-key --canonical --strict in
	rv_fails 3 rv-key --args-hash --strict in
}

@test "1,000,000 deep, and 1,000,000 members" {
	rv_need perl
	perl -e 'print "[" x 1000000, "]" x 1000000' >deep
	rv-key --canonical deep | cmp - deep
	perl -e 'print "{\"a\":" x 1000000, "1", "}" x 1000000' >deep
	rv-key --canonical --strict deep | cmp - deep
	perl -e 'print "[" x 1000000' >open
	rv_fails 3 rv-key --canonical open
	perl -e 'print "{", join(",", map { $_ * 7919 % 1000000 . ":$_" =~ s/^(\d+)/"$1"/r } 0 .. 999999), "}"' | sed 's/\([{,]\)\([0-9]*\):/\1"\2":/g' >wide
	perl -e 'my %m = map { $_ * 7919 % 1000000, $_ } 0 .. 999999; print "{", join(",", map { "\"$_\":$m{$_}" } sort keys %m), "}"' >want
	rv-key --canonical wide | cmp - want
}

@test "the locale changes nothing" {
	echo '[1.5,1e-7,123456.789e3]' >in
	for locale in C C.UTF-8 de_DE.UTF-8 tr_TR.UTF-8 nonsense; do
		rv_equal '[1.5,1e-7,123456789]' "$(LC_ALL=$locale rv-key --canonical in)"
	done
}

@test "20,000 random documents, whole and broken, against node" {
	rv_need node
	node "$RV_SRC/t/documents.mjs" 20000 "${RV_SEED:-1}" texts forms
	rv_fails 3 rv-key --stream --threads 2 <texts >answers
	# forms -> what the stream must have said, with the hash that node computes
	node -e '
		const { readFileSync } = require("fs"), { createHash } = require("crypto");
		const answers = readFileSync("answers", "utf8").split("\n"), forms = readFileSync("forms", "utf8").split("\n");
		const texts = readFileSync("texts", "utf8").split("\n");
		const seen = { number: 0, request: 0, key: 0 };
		let bad = answers.length !== 20001 ? 1 : 0;
		const sha = (text) => createHash("sha256").update(text, "utf8").digest("hex");
		for (let i = 0; i < 20000; i++) {
			const got = JSON.parse(answers[i]), form = forms[i];
			const refusal = form === "number" || form === "request";
			const key = sha(`{"agentSeq":0,"args":${form},"ordinal":0,"runId":"r","tool":"t"}`);
			seen[refusal ? form : "key"]++;
			if (refusal ? got.error?.code !== form || got.line !== i + 1 : got.idempotencyKey !== key || got.argsHash !== sha(form)) {
				if (bad++ < 5) console.error(`line ${i + 1}: ${texts[i]}\n  want ${form}\n  got ${answers[i]}`);
			}
		}
		console.log(JSON.stringify(seen));
		process.exit(bad === 0 && seen.number > 20 && seen.request > 1000 && seen.key > 10000 ? 0 : 1);'
}

@test "canonical bytes of random documents are node's bytes" {
	rv_need node
	node "$RV_SRC/t/documents.mjs" 150 7 texts forms
	compared=0
	while IFS= read -r -u 7 text && IFS= read -r -u 8 form; do
		case $form in number | request) continue ;; esac
		# the line itself is the document: its args come second, behind agentSeq
		printf '{"agentSeq":0,"args":%s,"id":%s,"ordinal":0,"runId":"r","tool":"t"}' "$form" \
			"$(printf '%s' "$text" | sed 's/^{"id":\([0-9]*\),.*/\1/')" >want
		printf '%s' "$text" | rv-key --canonical | cmp - want
		compared=$((compared + 1))
	done 7<texts 8<forms
	[ "$compared" -gt 80 ]
}
