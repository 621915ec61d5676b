import NetOptCore

/// A generator of command lines that contain a secret. The secrets are in all places where users put secrets,
/// rightly or wrongly. Two generators with the same seed generate the same command lines.
struct SecretCommands {
  /// One run of the program.
  struct Case {
    /// The command and its arguments.
    var arguments: [String]
    /// The environment variables of the run, as NAME=VALUE.
    var environment: [String] = []
    /// The content of the file "lines", which is also the program's standard input.
    var lines = ""
    /// The secret, which must not appear in any output.
    var secret: String
    /// Where the server redirects a request for a target that begins with /redirect: a URL, or a target that
    /// the test puts after /redirect.
    var location = "/"
    /// The content of the key ring file.
    var ring = SecretCommands.ring
  }

  private var random: SplitMix64
  private let server: String
  private let directory: String

  /// Makes a generator.
  ///
  /// - Parameters:
  ///   - seed: the seed of the random numbers.
  ///   - server: the server's name or address, and its port.
  ///   - directory: the directory of the program's files.
  init(seed: UInt64, server: String, directory: String) {
    random = SplitMix64(seed: seed)
    self.server = server
    self.directory = directory
  }

  /// Names of parameters whose values are secrets.
  private static let names = [
    "access_token", "api_key", "ApiKey", "X-Amz-Signature", "password", "client_secret", "PHPSESSID", "jwt",
    "auth", "refreshToken", "otp",
  ]
  /// Beginnings of header fields. A secret follows.
  private static let fields = [
    "Authorization: Bearer ", "Authorization: Basic ", "X-Api-Key: ", "Cookie: session=",
    "Proxy-Authorization: Basic ", "X-Vault-Token:", "X-Custom: ",
  ]
  /// The content of the key ring file in most cases. It does not contain the secret of the case.
  private static let ring = #"""
    {"schema":1,"keys":[{"id":"a","secret":"s","salt":"t","schemes":["netopt1","rfc9421","sigv4","salted-md5"],"legacy":true}]}
    """#
  private static let unreserved = Array(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~".utf8)

  /// Draws one of the items, each with the same probability.
  private mutating func pick<Item>(_ items: [Item]) -> Item {
    items[Int(random.below(UInt64(items.count)))]
  }

  /// Returns a new secret of 24 characters. Half of the secrets have only unreserved characters (RFC 3986,
  /// section 2.3). The others may also have characters of `others`.
  ///
  /// - Parameter others: the reserved characters that are valid where the secret will be.
  private mutating func secret(_ others: String) -> String {
    let alphabet = Self.unreserved + Array((random.below(2) == 0 ? "" : others).utf8)
    // The first character is always "a", because the program would take a secret that begins with a hyphen
    // for an option.
    return String(decoding: (0..<24).map { $0 == 0 ? 0x61 : pick(alphabet) }, as: UTF8.self)
  }

  /// Returns a text in which each byte is percent-encoded with a probability of `percent` %.
  private mutating func encoded(_ text: String, percent: UInt64) -> String {
    var out: [UInt8] = []
    for byte in text.utf8 {
      if random.below(100) < percent {
        out += Array("%".utf8)
        out.append(hex: [byte])
      } else {
        out.append(byte)
      }
    }
    return String(decoding: out, as: UTF8.self)
  }

  /// Returns a text that is percent-encoded `times` times.
  private mutating func wrapped(_ text: String, _ times: UInt64) -> String {
    var text = text
    for _ in 0..<times { text = encoded(text, percent: 100) }
    return text
  }

  /// Returns a request target with a new secret in its path, its query or its fragment. Stores the secret in
  /// `secret`.
  private mutating func target(_ secret: inout String) -> String {
    let name = encoded(pick(Self.names), percent: 10)
    switch random.below(9) {
    case 0:
      secret = self.secret("")
      return "/a;\(name)=\(secret)/b?c=d"
    case 1:
      secret = self.secret("")
      return "/a?next=" + wrapped("https://b.test/c?d=e&\(name)=\(secret)", 1 + random.below(3)) + "&page=2"
    case 2:
      secret = self.secret("/:@!$'()*,")
      return "/a?next=https://b.test/?\(name)=\(secret)"
    case 3:
      secret = self.secret("")
      return "/a?q=1#\(name)=\(secret)"
    case 4:
      secret = self.secret("")
      return "/a?data=" + wrapped("{\"page\":1,\"\(pick(Self.names))\": \"\(secret)\"}", 1 + random.below(2))
    case 5:
      secret = self.secret("")
      return "/a?next=" + wrapped("https://user:\(secret)@b.test/", random.below(3)) + "&page=2"
    case 6:
      secret = self.secret("")
      return "/proxy/" + wrapped("https://b.test/?\(name)=\(secret)", 1 + random.below(2)) + "/x"
    case 7:
      secret = self.secret("")
      return "/a?" + wrapped("\(pick(Self.names))=\(secret)", 1) + "&page=2"
    default:
      secret = self.secret("/:@!$'()*,;?=+")
      return "/a?q=lamp&\(name)=\(secret)&page=2"
    }
  }

  /// Returns a URL with a new secret in its target or its user information. Stores the secret in `secret`.
  /// netopt requests some of these URLs and refuses the others.
  private mutating func url(_ secret: inout String) -> String {
    let target = target(&secret)
    switch random.below(10) {
    case 0:
      secret = self.secret("/:?@!$'()*,;=")
      return "http://user:\(secret)@\(server)/a"
    case 1: return "ftp://\(server)\(target)"
    case 2: return "http://\(server):99999\(target)"
    case 3: return " http://\(server)\(target)"
    case 4: return "http://\(server)\(target) "
    case 5: return "\(server)\(target)"
    default: return "http://\(server)\(target)"
    }
  }

  /// Returns arguments of a request with a new secret in the URL, a header field or the body. Stores the
  /// secret in `secret`.
  private mutating func request(_ secret: inout String) -> [String] {
    switch random.below(4) {
    case 0:
      secret = self.secret(" /:?@!$'()*,;=+\"\\")
      let field = pick(Self.fields)
      // netopt refuses a field without its colon, and a field that the shell splits into words because it has
      // no quotation marks.
      let given = (random.below(4) == 0 ? field.replacing(":", with: " ") : field) + secret
      let words = random.below(4) == 0 ? given.split(separator: " ").map(String.init) : [given]
      return ["-H"] + words + ["http://\(server)/a"]
    case 1:
      secret = self.secret(" /:?@!$'()*,;=+\"\\")
      return ["-d", "password=\(secret)", "http://\(server)/a"]
    default: return [url(&secret)]
    }
  }

  /// Returns the next case, with a new secret.
  mutating func next() -> Case {
    var secret = ""
    var made = Case(arguments: [], secret: "")
    switch random.below(13) {
    case 11: made = signing(&secret)
    case 12: made = secretCommand(&secret)
    case 8:
      // By mistake, NETOPT_KEYS contains the content of a key ring instead of the name of its file.
      secret = self.secret("")
      made.environment = [
        "NETOPT_KEYS={\"schema\":1,\"keys\":[{\"id\":\"a\",\"secret\":\"\(secret)\",\"schemes\":[\"netopt1\"]}]}"
      ]
      made.arguments = pick([
        ["keys", "list"], ["keys", "new", "--key-id", "b"], ["sign", "--key-id", "a", "http://\(server)/"],
        ["get", "--sign", "a", "http://\(server)/"], ["verify", "http://\(server)/"],
      ])
    case 9:
      let url = url(&secret)
      made.arguments = pick([
        ["iplist", "check", url], ["iplist", "sign", url], ["iplist", "verify", url], ["compare", url, url],
        ["merge", url, url],
        ["cache", "sim", "--capacity", "1M", url], ["get", "--iplist", url, "http://\(server)/"],
        ["get", "--cacert", url, "http://\(server)/"], ["get", "-o", url, "http://\(server)/"],
        ["get", "--dns-servers", url, "http://\(server)/"], ["iplist", "suggest", "--from", url],
      ])
    case 10:
      // A list whose refresh URL contains a secret, such as an access token.
      let url = "http://\(server)\(target(&secret))"
      let list: JSONValue = [
        "schema": 1, "serial": 1, "refresh": ["url": .string(url.replacing("http:", with: "https:"))],
        "hosts": ["a.test": ["endpoints": [["ip": "192.0.2.1"]]]],
      ]
      made.lines = list.description
      made.arguments = ["iplist", pick(["check", "update", "verify"]), "lines"]
    case 0:
      made.arguments = ["bench", "-n1", "--targets", "dns", "--seed", "1"] + benchOutput() + request(&secret)
    case 1: made.arguments = fetch(&made.lines, &secret)
    case 2:
      made.arguments = ["cache", "explain", "--cache", "\(directory)/cache"] + request(&secret)
    case 3:
      secret = self.secret("!$'()*,;=")
      made.environment = [
        "\(pick(["http_proxy", "all_proxy"]))=\(pick(["http", "socks5h", "https"]))://user:\(secret)@\(server)"
      ]
      made.arguments = ["get", "--max-time=0.3"] + getOutput() + ["http://\(server)/a"]
    case 4:
      // The server redirects to a URL with a secret: to its own /redirect again and again, to FTP, or to a
      // URL with user information.
      let target = target(&secret)
      made.location = pick(["", "ftp://\(server)", "http://user:\(secret)@\(server)"]) + target
      made.arguments = ["get", pick(["-v", "--json", "--max-redirs=3"]), "http://\(server)/redirect"]
    case 5: made.arguments = [pick(["", "help", "probe", "verify"])].filter { !$0.isEmpty } + [url(&secret)]
    default: made.arguments = ["get"] + getOutput() + request(&secret)
    }
    made.secret = secret
    return made
  }

  /// Returns a run of `sign` or `verify` for a request with a new secret, and stores the secret in `secret`.
  /// The request is on the command line, or in the file "lines" as a message or as a line of JSON.
  private mutating func signing(_ secret: inout String) -> Case {
    var made = Case(arguments: [], secret: "")
    let scheme = pick([
      ["netopt1"], ["rfc9421"], ["sigv4", "--region=r", "--service=s"], ["salted-md5", "--allow-weak"],
      ["salted-md5"],
    ])
    made.arguments =
      [pick(["sign", "sign", "verify"]), "--keys=\(directory)/ring.json", "--key-id=a", "--scheme"] + scheme
    if random.below(2) == 0 { made.arguments.append("--json") }
    let time = 1_700_000_000
    made.arguments += ["--now", "\(time)"]
    // The signature is well-formed but does not match.
    let signature =
      "NETOPT1-HMAC-SHA256 keyid=a,ts=\(time),nonce=AAECAwQFBgcICQoLDA0ODw,headers=,sig="
      + String(repeating: "0", count: 64)
    switch random.below(3) {
    case 0:
      let target = target(&secret)
      made.lines = "GET \(target) HTTP/1.1\r\n" + pick(["Host: a.test\r\n", "Host: a b\r\n", ""])
      made.lines += pick(["Authorization: \(signature)\r\n", "X-Key \(secret)\r\n", ""]) + "\r\n"
      made.arguments += ["--http", "lines"]
    case 1:
      let url = url(&secret)
      let line: JSONValue = [
        "id": 1, "method": "GET", "url": .string(url), "headers": [["Authorization", .string(signature)]],
      ]
      made.lines =
        String(line.description.prefix(random.below(4) == 0 ? line.description.count - 3 : .max)) + "\n"
      made.arguments.append("--jsonl")
    default:
      if made.arguments[0] == "verify" { made.arguments += ["-H", "Authorization: \(signature)"] }
      made.arguments += request(&secret)
    }
    return made
  }

  /// Returns a run with a `secret_command` that contains a new secret. Stores the secret in `secret`. Many of
  /// the commands also print to standard error, fail, or print too much.
  private mutating func secretCommand(_ secret: inout String) -> Case {
    var made = Case(arguments: [], secret: "")
    secret = self.secret("")
    let command = pick([
      "echo \(secret) >&2; exit 3", "\(secret)", "echo \(secret); kill -9 $$", "echo '\(secret)",
      "exec \(secret)",
      "echo \(secret) | tee /dev/stderr", "set -x; printf %s \(secret)", "echo \(secret) >&2",
      "cat < \(secret)",
      "printf '\\033]0;%s\\007' \(secret) >&2; exit 126", "yes \(secret)", ": ${\(secret)?\(secret)}",
    ])
    let key: JSONValue = ["id": "a", "secret_command": .string(command), "schemes": ["netopt1"]]
    made.ring = (["schema": 1, "keys": [key]] as JSONValue).description
    made.arguments =
      pick([
        ["sign", "--key-id=a"], ["sign", "--key-id=a", "--json"], ["get", "--sign=a", "-v"],
        ["get", "--sign=a", "--json"],
      ])
      + ["--keys=\(directory)/ring.json", "http://\(server)/a"]
    return made
  }

  /// Returns options of `get` that choose what it writes and where.
  private mutating func getOutput() -> [String] {
    [pick(["-v", "--json", "-I", "-o/dev/null", "--cache=\(directory)/cache"]), pick(["-v", "--retry=0"])]
  }

  /// Returns options of `bench` that choose what it writes and where.
  private mutating func benchOutput() -> [String] {
    pick([
      ["--json=\(directory)/run.json"], ["--json"], [], ["--quiet", "--html", "\(directory)/run.html"],
      ["--export-markdown", "\(directory)/run.md", "--export-csv", "\(directory)/run.csv"],
    ])
  }

  /// Returns the arguments of `fetch`. Stores a request line with a new secret in `lines`, and the secret in
  /// `secret`. One line in four is truncated.
  private mutating func fetch(_ lines: inout String, _ secret: inout String) -> [String] {
    let url = url(&secret)
    let line: JSONValue = [
      "id": 1, "url": .string(url), "redirect": .string(pick(["follow", "error", "manual", "no"])),
    ]
    // netopt refuses a truncated line.
    lines = String(line.description.prefix(random.below(4) == 0 ? line.description.count - 3 : .max)) + "\n"
    return ["fetch", "--jsonl"]
  }
}
