package digest

import (
	"strings"
	"testing"
)

// The keys are made up. They are put together here, so that no scanner takes this
// file for a leak.
func key(prefix string, n int) string {
	const body = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
	return prefix + strings.Repeat(body, 2)[:n]
}

func TestMaskTakesSecrets(t *testing.T) {
	pem := "-----BEGIN RSA PRIVATE" + " KEY-----\nMIIEpAIBAAKCAQEA\nabc+/=\n-----END RSA PRIVATE" + " KEY-----"
	jwt := "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N"
	for _, c := range []struct{ in, want string }{
		{"use " + key("sk-ant-api03-", 40) + "-_x for it", "use [masked] for it"}, // SM-03
		{key("sk-or-v1-", 64), "[masked]"},
		{key("sk-proj-", 40) + ".", "[masked]."},
		{key("sk-", 48), "[masked]"},
		{"(" + key("ghp_", 36) + ")", "([masked])"},
		{key("github_pat_11", 40), "[masked]"},
		{key("glpat-", 20), "[masked]"},
		{key("xoxb-", 30), "[masked]"},
		{key("sk_live_", 24), "[masked]"},
		{key("whsec_", 32), "[masked]"},
		{key("sbp_", 40), "[masked]"},
		{key("AIza", 35), "[masked]"},
		{key("npm_", 36), "[masked]"},
		{key("hf_", 34), "[masked]"},
		{"AKIA" + "IOSFODNN7EXAMPLE", "[masked]"},
		{key("GOCSPX-", 28), "[masked]"},
		{key("SG.", 22) + key(".", 43), "[masked]"},
		{"123456789:" + key("", 35), "[masked]"},
		{"a " + jwt + " b", "a [masked] b"},
		{pem, "[masked]"},
		{"key:\n" + pem + "\nend", "key:\n[masked]\nend"},
		{"-----BEGIN OPENSSH PRIVATE" + " KEY-----\nb3BlbnNzaC1r\ncut off", "[masked]"},
		{`{"private_key": "-----BEGIN PRIVATE` + ` KEY-----\nMIIE\n-----END PRIVATE` + ` KEY-----\n"}`, `{"private_key": "[masked]\n"}`},
		{"AGE-SECRET-KEY-1" + strings.Repeat("QZ", 29), "[masked]"},

		{"Authorization: Bearer abcdef0123456789", "Authorization: Bearer [masked]"},
		{"Authorization: token 0123abcd", "Authorization: token [masked]"}, // SM-02
		{"-H 'authorization: Basic dXNlcjpwYXNz'", "-H 'authorization: Basic [masked]'"},
		{`{"Authorization": "Bearer abcdef0123456789"}`, `{"Authorization": "Bearer [masked]"}`},
		{"curl -H \"X-Api-Key: 0123456789abcdef\" u", "curl -H \"X-Api-Key: [masked]\" u"},
		{"Cookie: sid=31d4d96e407aad42; b=2", "Cookie: [masked]"},
		{"sends Bearer abcdefghijklmnop1 along", "sends Bearer [masked] along"},
		{"curl -u admin:hunter22 http://x", "curl -u admin:[masked] http://x"},

		{"postgres://app:s3cr/et@db:5432/x", "postgres://app:[masked]@db:5432/x"},
		{"https://" + key("", 40) + "@git.example/x.git", "https://[masked]@git.example/x.git"},
		{"redis://:pw@cache:6379", "redis://:[masked]@cache:6379"},
		{"https://x/y?access_token=abc123&z=1", "https://x/y?access_token=[masked]&z=1"},
		{"https://x/y?sv=1&sig=aBc%2BdEf", "https://x/y?sv=1&sig=[masked]"},
		{"https://hooks.slack.com/services/T000/B000/XXXX1111", "https://hooks.slack.com/[masked]"},

		{"DB_PASSWORD=hunter2", "DB_PASSWORD=[masked]"},
		{"export PGPASSWORD='x y z'", "export PGPASSWORD='[masked]'"},
		{"API_KEY=abc\nOTHER=1", "API_KEY=[masked]\nOTHER=1"},
		{"SECRET_TOKEN=\"a b c d\"", "SECRET_TOKEN=\"[masked]\""},
		{"AccountName=x;AccountKey=ab+c/d==;EndpointSuffix=y", "AccountName=x;AccountKey=[masked];EndpointSuffix=y"}, // SM-05
		{"Server=db;User Id=sa;Password=Pa55!;Encrypt=true", "Server=db;User Id=sa;Password=[masked];Encrypt=true"},
		{`{"password": "correct horse", "user": "x"}`, `{"password": "[masked]", "user": "x"}`},
		{`{\"client_secret\": \"abcd1234\"}`, `{\"client_secret\": \"[masked]\"}`},
		{"password: hunter2", "password: [masked]"},
		{"the db password is set: DB_PASS=abc1", "the db password is set: DB_PASS=[masked]"},
		{"deploy --token abc123 --force", "deploy --token [masked] --force"},
		{"deploy --api-key=abc123", "deploy --api-key=[masked]"},
		{"apiKey = 'abcd1234'", "apiKey = '[masked]'"},
		{"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = [masked]"},
		{"two: " + key("ghp_", 36) + " and " + key("ghp_", 36), "two: [masked] and [masked]"},
	} {
		if got := mask(c.in); got != c.want {
			t.Errorf("mask(%q)\n got %q\nwant %q", c.in, got, c.want)
		}
	}
}

func TestMaskLeavesTheRest(t *testing.T) {
	for _, s := range []string{
		"", "a", ":", "://", "-", "--", "eyJ", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
		"commit 3f786850e387550fdab836ed7e6dc881de23001b", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"max_tokens=4096", "tokenizer = bert", "tokens: 12000", "token_count=5", "password_reset=true", "PASSWORD_FILE=/run/secrets/db",
		"the token: we refresh it", "password: see the vault", "Make the password field longer", "secret: string", "token: string;",
		"if password == nil {", "password := os.Getenv(\"DB_PASSWORD\")", "token = getToken()", "token=$TOKEN", "password: ${DB_PASSWORD}",
		"API_KEY=<your key>", "API_KEY=your-key-here", "password=***", "token = config.auth.token", "PWD=/home/dev/app", "OLDPWD=../x",
		"https://example.com/a@b", "http://localhost:8080/x@y", "mailto:dev@example.com", "git@github.com:a/b.git", "ssh://git@host/x",
		"https://host:443/p?q=a@b", "npm_config_registry", "sk-learn", "sk-learn-contrib-documentation-pages", "AKIA", "key=value", "monkey=1",
		"Authorization: the header is missing", "the Authorization header", "a bearer of news", "cookie: it is set later", "docker run -u 1000:1000 x",
		"12:34:56", "10.0.0.1:8080", "0ec35364-2ce8-40dd-a9e7-1028a8b7bd39", "func (t Token) String() string",
		"secretName: my-app", "https://x/y?code=200&key=id", "tokenizer.json", "data:image/png;base64,iVBORw0KGgo=", "hf_hub_download", "use SECRET_NAME=prod",
	} {
		if got := mask(s); got != s {
			t.Errorf("mask(%q) = %q", s, got)
		}
	}
}

// What is masked once stays as it is.
func FuzzMask(f *testing.F) {
	f.Add("a:b@c://d:e@f Authorization: Bearer x password=\"y\" " + key("sk-ant-", 30))
	f.Fuzz(func(t *testing.T, s string) {
		once := mask(s)
		if len(once) > 9*len(s)+9 {
			t.Errorf("mask(%q) grew to %d bytes", s, len(once))
		}
		if strings.Contains(s, "ghp_") {
			return
		}
		// A key between other words is always found.
		secret := key("ghp_", 36)
		if strings.Contains(mask(s+" "+secret+" "), secret) {
			t.Errorf("the key stays behind %q", s)
		}
	})
}

// Texts that look like the beginning of a secret at every place are not read
// again and again.
func TestMaskIsLinear(t *testing.T) {
	for _, piece := range []string{"://", "a.", "sk-", "eyJ-", "eyJ.", "cookie:", "token:(", "token=", "-u a", "Authorization: ", "-----BEGIN ", "password=\"", "12345678:", "x@://:", "bearer ", "_key=", "hooks.slack.com/", "\\\"'` "} {
		m := masker{in: strings.Repeat(piece, (32<<10)/len(piece))}
		m.all()
		if m.looked > 4*window*len(m.in) {
			t.Errorf("%q again and again: %d bytes looked at for %d", piece, m.looked, len(m.in))
		}
	}
}

func TestMaskTakesLongSecretsWhole(t *testing.T) {
	long := strings.Repeat("Ab3dEf6h", 1_000)
	for _, s := range []string{"glpat-" + long, "eyJhbGciOiJIUzI1NiJ9." + long + "." + long, "password=" + long, "password: \"" + long + "\"", "Authorization: Bearer " + long} {
		if got := mask(s); strings.Contains(got, "Ab3dEf6h") {
			t.Errorf("mask of %.20q… leaves %d bytes", s, len(got))
		}
	}
}
