package digest

import (
	"strings"
	"sync"
	"unicode"
)

// masked stands where a secret stood.
const masked = "[masked]"

// A shape is how a vendor's keys begin, and what follows.
type shape struct {
	prefix string
	least  int    // characters after the prefix
	more   string // allowed in them besides letters and digits
	mixed  bool   // letters and digits both, or it is a word
}

// shapes holds the longer of two prefixes first.
var shapes = []shape{
	{"sk-ant-", 10, "-_", false},
	{"sk-or-v1-", 10, "-_", false},
	{"sk-proj-", 10, "-_", false},
	{"sk-", 20, "-_", true},
	{"sk_live_", 10, "", false}, {"sk_test_", 10, "", false},
	{"rk_live_", 10, "", false}, {"rk_test_", 10, "", false},
	{"whsec_", 10, "+/=", false},
	{"ghp_", 20, "", false}, {"gho_", 20, "", false}, {"ghu_", 20, "", false},
	{"ghs_", 20, "", false}, {"ghr_", 20, "", false}, {"github_pat_", 20, "_", false},
	{"glpat-", 15, "-_.", false}, {"gldt-", 15, "-_", false}, {"glrt-", 15, "-_.", false},
	{"glptt-", 15, "-_", false}, {"glcbt-", 15, "-_", false},
	{"xoxb-", 10, "-", false}, {"xoxp-", 10, "-", false}, {"xoxa-", 10, "-", false},
	{"xoxr-", 10, "-", false}, {"xoxs-", 10, "-", false}, {"xoxe-", 10, "-", false},
	{"xoxe.", 10, "-.", false}, {"xapp-", 10, "-", false},
	{"AKIA", 16, "", false}, {"ASIA", 16, "", false},
	{"AIza", 30, "-_", false}, {"ya29.", 20, "-_.", false}, {"GOCSPX-", 20, "-_", false},
	{"npm_", 30, "", false}, {"pypi-", 40, "-_", false}, {"rubygems_", 30, "", false},
	{"hf_", 20, "", false}, {"r8_", 30, "", false}, {"gsk_", 30, "", false},
	{"xai-", 30, "", false}, {"pplx-", 30, "", false}, {"nvapi-", 30, "-_", false}, {"tvly-", 16, "-", true},
	{"dop_v1_", 30, "", false}, {"doo_v1_", 30, "", false}, {"shpat_", 20, "", false}, {"shpss_", 20, "", false},
	{"SG.", 30, "-_.", true}, {"sbp_", 20, "", false}, {"sb_secret_", 15, "-_", false},
	{"lin_api_", 20, "", false}, {"ntn_", 30, "", false}, {"secret_", 30, "", true},
	{"hvs.", 20, "-_", false}, {"hvb.", 20, "-_", false}, {"dckr_pat_", 20, "-_", false},
	{"PMAK-", 20, "-", false}, {"sq0atp-", 20, "-_", false}, {"sq0csp-", 20, "-_", false},
	{"AGE-SECRET-KEY-1", 20, "", false}, {"key-", 32, "", true},
}

// shapesOf gives the shapes by their first byte.
var shapesOf = sync.OnceValue(func() *[256][]shape {
	var by [256][]shape
	for _, s := range shapes {
		by[s.prefix[0]] = append(by[s.prefix[0]], s)
	}
	return &by
})

// webhooks are addresses of which the path is the secret.
var webhooks = []string{"hooks.slack.com/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"}

// mask puts a remark in the place of secrets of common shapes: vendors' keys,
// private keys, tokens in headers, passwords in addresses, values of settings
// that are called secret. It goes by shape and name alone: a password in a
// sentence stays, and now and then something harmless goes.
func mask(s string) string {
	m := masker{in: s}
	return m.all()
}

func (m *masker) all() string {
	for m.at < len(m.in) {
		if !m.secret() {
			m.at++
		}
	}
	if m.done == 0 {
		return m.in
	}
	m.out.WriteString(m.in[m.done:])
	return m.out.String()
}

// window is how far a place is looked at before it is decided whether a secret
// begins there: what is decided at every place must not grow with the text. A
// secret may be longer.
const window = 256

type masker struct {
	in     string
	at     int // where it looks
	done   int // up to where in was copied
	out    strings.Builder
	looked int // bytes that were looked at ahead
}

// hide masks in[from:to] and goes on behind it.
func (m *masker) hide(from, to int) bool {
	if from >= to || from < m.done {
		return false
	}
	m.out.WriteString(m.in[m.done:from])
	m.out.WriteString(masked)
	m.at, m.done = to, to
	return true
}

// secret looks for one at the current place and steps over what it has read.
func (m *masker) secret() bool {
	c := m.in[m.at]
	switch {
	case c == '-' && strings.HasPrefix(m.in[m.at:], "-----BEGIN "):
		return m.privateKey()
	case c == ':' && strings.HasPrefix(m.in[m.at:], "://"):
		return m.address()
	case c == '-' && (m.at == 0 || isBlank(m.in[m.at-1])):
		return m.userFlag()
	case !isAlnum(c) || m.at > 0 && isAlnum(m.in[m.at-1]):
		return false
	}
	return m.vendor() || m.webToken() || m.bot() || m.webhook() || m.named()
}

// run gives the end of the run of bytes that part permits, within the window if
// there is one.
func (m *masker) run(from int, limited bool, part func(byte) bool) int {
	end := from
	for end < len(m.in) && part(m.in[end]) && !(limited && end-from >= window) {
		end++
	}
	m.looked += end - from
	return end
}

func (m *masker) privateKey() bool {
	rest := m.in[m.at:]
	head := rest[:min(len(rest), 80)]
	key := strings.Index(head, "PRIVATE KEY")
	if key < 0 || strings.Contains(head[:key], "\n") {
		return false
	}
	end := len(rest) // cut off, it is a key all the same
	if i := strings.Index(rest, "-----END "); i >= 0 {
		if j := strings.Index(rest[i+len("-----END "):], "-----"); j >= 0 && j < 80 {
			end = i + len("-----END ") + j + len("-----")
		}
	}
	return m.hide(m.at, m.at+end)
}

// address masks the password in scheme://user:password@host, and a lone name
// that is long enough to be a token.
func (m *masker) address() bool {
	from := m.at + len("://")
	end := m.run(from, true, func(c byte) bool { return !isBlank(c) && strings.IndexByte("\"'`<>\\", c) < 0 })
	authority := m.in[from:end]
	// A password may hold a slash, but what comes before a question mark or a
	// slash and has no @ is a host.
	host := strings.LastIndexByte(authority, '@')
	if slash := strings.IndexAny(authority, "/?#"); slash >= 0 && slash < host {
		if at := strings.LastIndexByte(authority[:slash], '@'); at >= 0 {
			host = at
		} else if !strings.Contains(authority[:slash], ":") || isPort(authority[:slash]) {
			return false
		}
	}
	if host < 0 {
		return false
	}
	if colon := strings.IndexByte(authority[:host], ':'); colon >= 0 {
		if value := authority[colon+1 : host]; isReference(value) {
			return false
		}
		return m.hide(from+colon+1, from+host)
	}
	return host >= 20 && m.hide(from, from+host)
}

// isPort tells whether an authority ends in a port.
func isPort(authority string) bool {
	port := authority[strings.LastIndexByte(authority, ':')+1:]
	return len(port) <= 5 && strings.Trim(port, "0123456789") == ""
}

// userFlag masks what follows the colon in -u name:password.
func (m *masker) userFlag() bool {
	rest := m.in[m.at:]
	for _, flag := range []string{"-u ", "--user ", "--user=", "--proxy-user "} {
		if !strings.HasPrefix(rest, flag) {
			continue
		}
		from := m.at + len(flag)
		if from < len(m.in) && (m.in[from] == '"' || m.in[from] == '\'') {
			from++
		}
		end := m.run(from, true, func(c byte) bool { return !isBlank(c) && c != '"' && c != '\'' })
		colon := strings.IndexByte(m.in[from:end], ':')
		if colon <= 0 || isReference(m.in[from+colon+1:end]) || strings.Trim(m.in[from:end], "0123456789:") == "" {
			return false
		}
		return m.hide(from+colon+1, end)
	}
	return false
}

func (m *masker) vendor() bool {
	rest := m.in[m.at:]
	for _, s := range shapesOf()[rest[0]] {
		if !strings.HasPrefix(rest, s.prefix) {
			continue
		}
		letters, digits := false, false
		part := func(c byte) bool { return isAlnum(c) || strings.IndexByte(s.more, c) >= 0 }
		end := m.run(m.at+len(s.prefix), true, part) - m.at
		for _, c := range []byte(rest[len(s.prefix):end]) {
			digits = digits || isDigit(c)
			letters = letters || isAlnum(c) && !isDigit(c)
		}
		if end == len(s.prefix)+window {
			if s.mixed && !(letters && digits) {
				continue
			}
			end = m.run(m.at+len(s.prefix), false, part) - m.at
		}
		for end > 0 && strings.IndexByte(".-_", rest[end-1]) >= 0 && strings.IndexByte(s.more, rest[end-1]) >= 0 {
			end-- // the sentence's, not the key's
		}
		n := end - len(s.prefix)
		switch {
		case n < s.least, s.mixed && !(letters && digits):
			continue
		case len(s.prefix) == 4 && s.least == 16: // AWS: that many, no more, in capitals
			if n != 16 || rest[:end] != strings.ToUpper(rest[:end]) {
				continue
			}
		}
		return m.hide(m.at, m.at+end)
	}
	return false
}

// webToken masks a JSON web token.
func (m *masker) webToken() bool {
	rest := m.in[m.at:]
	if !strings.HasPrefix(rest, "eyJ") {
		return false
	}
	part := func(c byte) bool { return isAlnum(c) || strings.IndexByte("-_.=", c) >= 0 }
	end := m.run(m.at, true, part)
	token := m.in[m.at:end]
	// The middle part may be longer than is looked at.
	if dots := strings.Count(token, "."); len(token) < 40 || dots < 2 && !(dots == 1 && len(token) == window) {
		return false
	}
	return m.hide(m.at, m.run(m.at, false, part))
}

// bot masks a token of Telegram's: a number, a colon, 35 characters.
func (m *masker) bot() bool {
	rest := m.in[m.at:]
	n := 0
	for n < len(rest) && n <= 10 && isDigit(rest[n]) {
		n++
	}
	if n < 8 || n > 10 || n == len(rest) || rest[n] != ':' {
		return false
	}
	end := n + 1
	for end < len(rest) && (isAlnum(rest[end]) || rest[end] == '-' || rest[end] == '_') {
		end++
	}
	return end-n-1 >= 34 && end-n-1 <= 36 && m.hide(m.at, m.at+end)
}

func (m *masker) webhook() bool {
	rest := m.in[m.at:]
	for _, w := range webhooks {
		if !strings.HasPrefix(rest, w) {
			continue
		}
		end := len(w)
		for end < len(rest) && (isAlnum(rest[end]) || strings.IndexByte("/-_", rest[end]) >= 0) {
			end++
		}
		return m.hide(m.at+len(w), m.at+end)
	}
	return false
}

// named masks the value of a setting, a header or a flag that is called secret.
func (m *masker) named() bool {
	from := m.at
	end := from
	for end < len(m.in) && end-from <= maxName && (isAlnum(m.in[end]) || strings.IndexByte("_-.", m.in[end]) >= 0) {
		end++
	}
	name := m.in[from:end]
	lower := strings.ToLower(name)
	switch {
	case lower == "bearer":
		return m.bearer(end)
	case lower == "authorization" || lower == "proxy-authorization":
		return m.header(end, true)
	case lower == "cookie" || lower == "set-cookie":
		return m.header(end, false)
	}
	asked := from > 0 && (m.in[from-1] == '?' || m.in[from-1] == '&')
	called := isSecretName(name)
	if !called && !(asked && (lower == "sig" || lower == "key" || lower == "code")) {
		// What is in the name was no secret, but one may be glued to its end.
		return false
	}
	flag := from > 1 && m.in[from-2:from] == "--"
	v, ok := m.value(end, flag)
	if !ok || !v.secret(lower) || !called && len(v.text) < 8 {
		return false
	}
	return m.hide(v.from, max(v.to, m.run(v.to, v.to-v.from < window, v.part)))
}

// bearer masks what follows the word.
func (m *masker) bearer(at int) bool {
	if at >= len(m.in) || m.in[at] != ' ' {
		return false
	}
	from := at + 1
	end := from
	for end < len(m.in) && (isAlnum(m.in[end]) || strings.IndexByte("-._~+/=", m.in[end]) >= 0) {
		end++
	}
	word := m.in[from:end]
	return (len(word) >= 16 || len(word) >= 8 && strings.ContainsAny(word, "0123456789")) && m.hide(from, end)
}

// header masks the value of a header up to the end of the line or of the quotes
// around it; of an Authorization the scheme stays.
func (m *masker) header(at int, scheme bool) bool {
	from := at
	for from < len(m.in) && strings.IndexByte("\\\"'` \t", m.in[from]) >= 0 {
		from++
	}
	if from == len(m.in) || m.in[from] != ':' && m.in[from] != '=' {
		return false
	}
	from++
	for from < len(m.in) && strings.IndexByte("\\\"'` \t", m.in[from]) >= 0 {
		from++
	}
	part := func(c byte) bool { return strings.IndexByte("\n\r\\\"'`", c) < 0 }
	end := m.run(from, true, part)
	value := m.in[from:end]
	if scheme {
		word, rest, two := strings.Cut(value, " ")
		switch {
		case two && isScheme(word):
			from, value = from+len(word)+1, rest
		case two && !strings.ContainsAny(word, "0123456789"):
			return false // a sentence about the header
		}
	} else if !strings.Contains(value, "=") {
		return false
	}
	return len(value) >= 4 && !isReference(value) && m.hide(from, m.run(from, false, part))
}

func isScheme(word string) bool {
	switch strings.ToLower(word) {
	case "bearer", "basic", "token", "digest", "apikey", "negotiate", "aws4-hmac-sha256":
		return true
	}
	return false
}

// A value is what a setting is set to.
type value struct {
	from, to int
	text     string
	quoted   bool
	loose    bool // after a colon, or with room around the sign: perhaps prose or code
	part     func(byte) bool
}

// value reads what follows a name: a sign and a value, or the value alone after
// a flag.
func (m *masker) value(at int, flag bool) (value, bool) {
	in := m.in
	i := at
	for i < len(in) && strings.IndexByte("\\\"'`]", in[i]) >= 0 {
		i++
	}
	room := false
	for i < len(in) && (in[i] == ' ' || in[i] == '\t') {
		i++
		room = true
	}
	if i == len(in) {
		return value{}, false
	}
	var v value
	switch {
	case strings.HasPrefix(in[i:], ":="), strings.HasPrefix(in[i:], "=>"):
		i += 2
		v.loose = true
	case strings.HasPrefix(in[i:], "=="), strings.HasPrefix(in[i:], "=~"):
		return v, false // compared, not set
	case in[i] == '=':
		i++
		v.loose = room
	case in[i] == ':':
		i++
		v.loose = true
	case flag && room && in[i] != '-':
	default:
		return v, false
	}
	for i < len(in) && (in[i] == ' ' || in[i] == '\t') {
		i++
		v.loose = v.loose || !flag
	}
	for i < len(in) && in[i] == '\\' {
		i++
	}
	if i < len(in) && strings.IndexByte("\"'`", in[i]) >= 0 {
		quote := in[i]
		v.quoted, v.from = true, i+1
		v.part = func(c byte) bool { return c != quote && c != '\\' && c != '\n' }
		v.to = m.run(v.from, true, v.part)
	} else {
		v.from = i
		v.part = func(c byte) bool { return !isBlank(c) && strings.IndexByte(",;&\"'`)}]>\\", c) < 0 }
		v.to = m.run(v.from, true, v.part)
		for v.loose && v.to > v.from && strings.IndexByte(".:!?", in[v.to-1]) >= 0 {
			v.to--
		}
	}
	v.text = in[v.from:v.to]
	return v, v.text != ""
}

// secret tells whether the value of a setting with this name is one, and not a
// word of a sentence, a type, or where the secret comes from.
func (v value) secret(name string) bool {
	text := v.text
	if isReference(text) || strings.HasPrefix(text, "-----BEGIN ") { // a key ends where it says so
		return false
	}
	if strings.HasSuffix(name, "pwd") && strings.ContainsRune("/~.\\", rune(text[0])) {
		return false // a working directory
	}
	if v.quoted {
		return len(text) >= 4 || !v.loose
	}
	if strings.ContainsAny(text, "([") {
		return false // code
	}
	digits, signs, dots := false, false, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case isDigit(c):
			digits = true
		case strings.IndexByte("!#$%^&*+=@~", c) >= 0:
			signs = true
		case c == '.':
			dots = true
		}
	}
	if dots && !digits && !signs {
		return false // a field of something
	}
	if !v.loose {
		return true
	}
	if strings.Trim(text, "0123456789") == "" {
		return len(text) >= 6
	}
	return len(text) >= 6 && (digits || signs) || len(text) >= 24
}

// isReference tells whether text stands for a value that is elsewhere, or for
// none.
func isReference(text string) bool {
	if text == "" || strings.HasPrefix(text, masked[:1]) {
		return true
	}
	if strings.IndexByte("$<{%*", text[0]) >= 0 {
		return true
	}
	lower := strings.ToLower(strings.TrimRight(text, "!?.,;"))
	switch lower {
	case "", "null", "nil", "none", "undefined", "true", "false", "yes", "no", "string", "str", "bytes", "boolean", "bool",
		"number", "int", "integer", "any", "required", "optional", "object", "secret", "token", "password", "passwd", "redacted", "hidden", "empty":
		return true
	}
	for _, start := range []string{"your-", "your_", "<your", "example", "process.env", "os.environ", "env.", "secrets.", "vault:", "op://", "file:"} {
		if strings.HasPrefix(lower, start) {
			return true
		}
	}
	return strings.Trim(lower, "x") == "" || strings.Trim(lower, "*") == "" || strings.Trim(lower, ".") == ""
}

// innocent are last words of names that speak about a secret and hold none.
var innocent = map[string]bool{
	"file": true, "path": true, "dir": true, "url": true, "uri": true, "name": true, "names": true, "id": true, "ids": true,
	"type": true, "len": true, "length": true, "count": true, "size": true, "ttl": true, "expiry": true, "expires": true,
	"field": true, "policy": true, "reset": true, "hint": true, "manager": true, "store": true, "prompt": true, "env": true,
	"var": true, "budget": true, "limit": true, "usage": true, "version": true, "arn": true, "ref": true, "index": true,
	"endpoint": true, "stdin": true, "min": true, "max": true, "rotation": true, "age": true,
}

// keyOf are words that make a following "key" a secret.
var keyOf = map[string]bool{
	"api": true, "access": true, "private": true, "secret": true, "account": true, "auth": true, "signing": true,
	"encryption": true, "master": true, "shared": true, "deploy": true, "service": true,
}

// maxName bounds names of settings.
const maxName = 80

// isSecretName tells whether a setting of this name holds a secret.
func isSecretName(name string) bool {
	if len(name) < 3 || len(name) > maxName {
		return false
	}
	words := nameWords(name)
	if len(words) == 0 || innocent[words[len(words)-1]] {
		return false
	}
	for i, w := range words {
		switch w {
		case "password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "credential", "credentials",
			"authtoken", "accesstoken", "secretkey", "accesskey", "accountkey", "privatekey", "signature":
			return true
		case "pass", "pat":
			if i > 0 && i == len(words)-1 {
				return true
			}
		case "key":
			if i > 0 && keyOf[words[i-1]] {
				return true
			}
		}
		if strings.HasSuffix(w, "password") || strings.HasSuffix(w, "passwd") {
			return true // PGPASSWORD
		}
	}
	return false
}

// nameWords splits a name at signs and where small letters turn to capitals.
func nameWords(name string) []string {
	var words []string
	start := 0
	add := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(name[start:end]))
		}
		start = end
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case !isAlnum(c):
			add(i)
			start = i + 1
		case i > start && unicode.IsUpper(rune(c)) && unicode.IsLower(rune(name[i-1])):
			add(i)
		}
	}
	add(len(name))
	return words
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlnum(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
