#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/cli/cli.h"
#include "lib/executor/key.h"
#include "lib/executor/keys.h"
#include "lib/json/json.h"

#define LARGEST_INTEGER INT64_C(9007199254740991) /* 2^53 - 1 */
#define MOST_THREADS 256

struct options {
	int derivation; /* an index: 0 is derivation 1 */
	bool derivation_given;
	const char *run_id;
	const char *genesis;
	int64_t agent_seq;
	bool agent_seq_given;
	int64_t ordinal;
	bool ordinal_given;
	const char *tool;
	const char *args;
	const char *args_file;
	const char *run;
	bool new_run;
	bool stream;
	bool recorded;
	int64_t threads;
	bool threads_given;
	bool args_hash;
	bool canonical;
	bool strict;
};

#define AT(member) offsetof(struct options, member)

static const struct rv_option table[] = {
	{ "derivation", 0, RV_OPT_CHOICE, AT(derivation), AT(derivation_given), NULL,
	  "the derivation; 2 if not given", 0, 0, "1|2" },
	{ "run-id", 0, RV_OPT_STRING, AT(run_id), RV_UNSEEN, "ID",
	  "the name of the run; with --new-run random if not given", 0, 0, NULL },
	{ "genesis", 0, RV_OPT_STRING, AT(genesis), RV_UNSEEN, "TOKEN",
	  "the run's genesis, for derivation 2 alone; an empty one is a value", 0, 0, NULL },
	{ "run", 0, RV_OPT_STRING, AT(run), RV_UNSEEN, "FILE",
	  "take run id, genesis and derivation from a run file", 0, 0, NULL },
	{ "new-run", 0, RV_OPT_FLAG, AT(new_run), RV_UNSEEN, NULL, "make the run file FILE", 0, 0, NULL },
	{ "agent-seq", 0, RV_OPT_INTEGER, AT(agent_seq), AT(agent_seq_given), "N",
	  "the place of the agent in the run", 0, LARGEST_INTEGER, NULL },
	{ "ordinal", 0, RV_OPT_INTEGER, AT(ordinal), AT(ordinal_given), "N",
	  "the place of the call in the agent's work", 0, LARGEST_INTEGER, NULL },
	{ "tool", 0, RV_OPT_STRING, AT(tool), RV_UNSEEN, "NAME", "the tool", 0, 0, NULL },
	{ "args", 0, RV_OPT_STRING, AT(args), RV_UNSEEN, "JSON", "its arguments", 0, 0, NULL },
	{ "args-file", 0, RV_OPT_STRING, AT(args_file), RV_UNSEEN, "FILE",
	  "its arguments from a file; - is standard input", 0, 0, NULL },
	{ "strict", 0, RV_OPT_FLAG, AT(strict), RV_UNSEEN, NULL,
	  "refuse duplicate members, lone surrogates, and integers\nthat a double does not hold", 0, 0, NULL },
	{ "stream", 0, RV_OPT_FLAG, AT(stream), RV_UNSEEN, NULL, "read calls from standard input, one a line",
	  0, 0, NULL },
	{ "recorded", 0, RV_OPT_FLAG, AT(recorded), RV_UNSEEN, NULL,
	  "the lines are of recorded runs: without execKeyDerivation\n"
	  "they are derivation 1, a genesis beside 1 is ignored", 0, 0, NULL },
	{ "threads", 0, RV_OPT_INTEGER, AT(threads), AT(threads_given), "N",
	  "use so many threads for --stream; the order stays", 1, MOST_THREADS, NULL },
	{ "args-hash", 0, RV_OPT_FLAG, AT(args_hash), RV_UNSEEN, NULL, "print the hash of one JSON document",
	  0, 0, NULL },
	{ "canonical", 0, RV_OPT_FLAG, AT(canonical), RV_UNSEEN, NULL,
	  "print the canonical form of one JSON document", 0, 0, NULL },
};

static const char *const usage[] = {
	"[--derivation 1|2] --run-id ID [--genesis TOKEN] --agent-seq N --ordinal N\n"
	"              --tool NAME (--args JSON | --args-file FILE) [--strict]",
	"--run FILE --agent-seq N --ordinal N --tool NAME (--args JSON | --args-file FILE)\n"
	"              [--strict]",
	"--new-run [--run-id ID] FILE",
	"--stream [--recorded] [--threads N] [--strict]",
	"--args-hash [--strict] [FILE]",
	"--canonical [--strict] [FILE]",
	NULL,
};

static const char *const statuses[] = {
	"0  done",
	"2  the command line is wrong",
	"3  the input is refused; with --stream, one line of it at least",
	"5  the system failed: no such file, the run file exists, a failed write, no memory",
	NULL,
};

static const struct rv_program program = {
	.name = "rv-key",
	.usage = usage,
	.about = "Derive the idempotency key of a call.",
	.options = table,
	.count = sizeof table / sizeof table[0],
	.statuses = statuses,
};

/* The options of a call, which the other forms do not take; NULL if there is none. */
static const char *call_option(const struct options *o)
{
	return o->derivation_given ? "derivation" : o->genesis != NULL ? "genesis" : o->run != NULL ? "run"
	     : o->agent_seq_given ? "agent-seq" : o->ordinal_given ? "ordinal" : o->tool != NULL ? "tool"
	     : o->args != NULL ? "args" : o->args_file != NULL ? "args-file" : NULL;
}

static int check_mode(const struct options *o, int operands)
{
	int modes = o->new_run + o->stream + o->args_hash + o->canonical;
	const char *mode = o->new_run ? "new-run" : o->stream ? "stream" : o->args_hash ? "args-hash" : "canonical";

	if (modes > 1)
		return rv_cli_usage("--new-run, --stream, --args-hash and --canonical exclude each other");
	if (modes == 1 && call_option(o) != NULL)
		return rv_cli_usage("--%s does not go with --%s", call_option(o), mode);
	if (o->run_id != NULL && modes == 1 && !o->new_run)
		return rv_cli_usage("--run-id does not go with --%s", mode);
	if ((o->recorded || o->threads_given) && !o->stream)
		return rv_cli_usage("--recorded and --threads need --stream");
	if (o->new_run && o->strict)
		return rv_cli_usage("--strict does not go with --new-run");
	if (o->new_run && operands != 1)
		return rv_cli_usage("--new-run needs one FILE");
	if ((o->args_hash || o->canonical) ? operands > 1 : !o->new_run && operands > 0)
		return rv_cli_usage("too many operands");
	return RV_EXIT_DONE;
}

static int check_call(const struct options *o)
{
	if (!o->agent_seq_given || !o->ordinal_given || o->tool == NULL)
		return rv_cli_usage("a key needs --agent-seq, --ordinal and --tool");
	if ((o->args == NULL) == (o->args_file == NULL))
		return rv_cli_usage("a key needs one of --args and --args-file");
	if (o->run != NULL && (o->run_id != NULL || o->genesis != NULL || o->derivation_given))
		return rv_cli_usage("--run says the run id, the genesis and the derivation");
	if (o->run == NULL && o->run_id == NULL)
		return rv_cli_usage("a key needs --run-id or --run");
	if (o->run == NULL && o->derivation == 0 && o->genesis != NULL)
		return rv_cli_usage("derivation 1 has no --genesis");
	if (o->run == NULL && o->derivation == 1 && o->genesis == NULL)
		return rv_cli_usage("derivation 2 needs --genesis");
	return RV_EXIT_DONE;
}

static int check_text(const struct options *o)
{
	const char *const texts[] = { o->run_id, o->genesis, o->tool };
	static const char *const options[] = { "run-id", "genesis", "tool" };

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		if (texts[i] != NULL && !rv_text_is_utf8(texts[i], strlen(texts[i])))
			return rv_cli_usage("--%s is not UTF-8", options[i]);
	}
	return RV_EXIT_DONE;
}

/* One document, named for messages, in canonical form. */
static int canonical_of(const struct options *o, const char *text, size_t len, const char *name, struct rv_buffer *out,
			struct rv_error *err)
{
	struct rv_json_doc *doc = rv_json_doc_new(err);
	const struct rv_json_node *root = NULL;
	int result = -1;

	if (doc != NULL)
		root = rv_json_parse(doc, text, len, o->strict ? RV_JSON_STRICT : RV_JSON_DEFAULT, err);
	if (root != NULL)
		result = rv_json_canonical(root, out, err);
	rv_json_doc_free(doc);
	return result == 0 ? 0 : rv_error_wrap(err, "%s", name);
}

static int canonical_of_file(const struct options *o, const char *path, struct rv_buffer *out, struct rv_error *err)
{
	const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
	struct rv_buffer text = RV_BUFFER_INIT;
	int result = rv_io_read_file(path, &text, err);

	if (result == 0)
		result = canonical_of(o, text.data, text.len, name, out, err);
	rv_buffer_release(&text);
	return result;
}

static void print_hex(const char *hex)
{
	char line[RV_SHA256_HEX + 1];

	memcpy(line, hex, RV_SHA256_HEX - 1);
	line[RV_SHA256_HEX - 1] = '\n';
	(void)rv_cli_write(line, RV_SHA256_HEX);
}

static int find_run(const struct options *o, struct rv_run_file *run, struct rv_key_input *input, struct rv_error *err)
{
	if (o->run == NULL) {
		input->derivation = o->derivation + 1;
		input->run_id = rv_span_of(o->run_id);
		input->genesis = o->genesis != NULL ? rv_span_of(o->genesis) : RV_SPAN("");
		return 0;
	}
	if (rv_run_file_read(run, o->run, err) != 0)
		return -1;
	input->derivation = run->derivation;
	input->run_id = (struct rv_span){ run->run_id.data, run->run_id.len };
	input->genesis = (struct rv_span){ run->genesis.data, run->genesis.len };
	return 0;
}

static int print_key(const struct options *o)
{
	struct rv_key_input input = { .agent_seq = o->agent_seq, .ordinal = o->ordinal, .tool = rv_span_of(o->tool) };
	struct rv_run_file run = { .run_id = RV_BUFFER_INIT, .genesis = RV_BUFFER_INIT };
	struct rv_buffer args = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_sha256 *sha = NULL;
	char key[RV_SHA256_HEX];
	int result;

	result = o->args != NULL ? canonical_of(o, o->args, strlen(o->args), "--args", &args, &err)
				 : canonical_of_file(o, o->args_file, &args, &err);
	if (result == 0)
		result = find_run(o, &run, &input, &err);
	if (result == 0)
		sha = rv_sha256_new(&err);
	input.args = (struct rv_span){ args.data, args.len };
	if (sha != NULL && rv_key_derive(sha, &input, key, &err) == 0)
		print_hex(key);
	rv_sha256_free(sha);
	rv_run_file_release(&run);
	rv_buffer_release(&args);
	return err.code == RV_E_NONE ? RV_EXIT_DONE : rv_cli_fail(&err);
}

static int print_document(const struct options *o, const char *path)
{
	struct rv_buffer out = RV_BUFFER_INIT;
	struct rv_error err = RV_ERROR_INIT;
	struct rv_sha256 *sha = NULL;
	char hex[RV_SHA256_HEX];

	if (canonical_of_file(o, path, &out, &err) == 0) {
		if (o->canonical)
			(void)rv_cli_write(out.data, out.len);
		else if ((sha = rv_sha256_new(&err)) != NULL && rv_sha256_hex(sha, out.data, out.len, hex, &err) == 0)
			print_hex(hex);
	}
	rv_sha256_free(sha);
	rv_buffer_release(&out);
	return err.code == RV_E_NONE ? RV_EXIT_DONE : rv_cli_fail(&err);
}

static int make_run(const struct options *o, const char *path)
{
	struct rv_error err = RV_ERROR_INIT;

	return rv_run_file_create(path, o->run_id, &err) == 0 ? RV_EXIT_DONE : rv_cli_fail(&err);
}

static int run_stream(const struct options *o)
{
	struct rv_key_stream stream = {
		.fd = STDIN_FILENO,
		.threads = (unsigned)o->threads,
		.json_flags = o->strict ? RV_JSON_STRICT : RV_JSON_DEFAULT,
		.key_flags = o->recorded ? RV_KEY_RECORDED : 0,
		.write = rv_cli_write,
	};
	struct rv_error err = RV_ERROR_INIT;
	bool refused = false;

	if (rv_key_stream_run(&stream, &refused, &err) < 0) {
		(void)rv_error_wrap(&err, "standard input");
		return rv_cli_fail(&err);
	}
	return refused ? RV_EXIT_REFUSED : RV_EXIT_DONE;
}

static int run(const struct options *o, int operands, char *const *operand)
{
	const char *path = operands > 0 ? operand[0] : "-";
	int status = check_mode(o, operands);

	if (status == RV_EXIT_DONE)
		status = check_text(o);
	if (status != RV_EXIT_DONE)
		return status;
	if (o->new_run)
		return make_run(o, path);
	if (o->stream)
		return run_stream(o);
	if (o->args_hash || o->canonical)
		return print_document(o, path);
	status = check_call(o);
	return status == RV_EXIT_DONE ? print_key(o) : status;
}

int main(int argc, char **argv)
{
	struct options options = { .derivation = 1, .threads = 1 };
	int operand = 0;
	int status = 0;

	rv_cli_start("rv-key");
	if (rv_cli_parse(&program, argc, argv, &options, &operand, &status) != 0)
		return status;
	return rv_cli_end(run(&options, argc - operand, argv + operand));
}
