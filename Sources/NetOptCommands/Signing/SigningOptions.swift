import FoundationEssentials
import NetOptCore
import NetOptCrypto
import NetOptSigning

/// The options of `netopt sign` and `netopt verify`: keys, scheme, and the source of the request.
enum SigningOptions {
  static let keys = Option(
    "keys", takes: .required("FILE"), "key ring; only its owner may have read permission",
    environment: "NETOPT_KEYS")
  static let keyID = Option("key-id", takes: .required("ID"), "id of the key in the key ring")
  static let scheme = Option(
    "scheme", takes: .required("NAME"),
    "netopt1, rfc9421, sigv4, salted-md5 or sealed-key; default: netopt1; verify: the scheme that the request shows, "
      + "never a weak one")
  static let allowWeak = Option("allow-weak", "allow the weak scheme salted-md5 (see docs/signing.md)")
  static let options = Option(
    "options", takes: .required("JSON"),
    "options of the scheme as a JSON object, as in JSON Lines; replaces the options below")

  static let http = Option(
    "http", takes: .required("FILE"), "read a raw HTTP/1.1 request from FILE; -: standard input")
  static let jsonl = Option(
    "jsonl",
    "read one request per line as JSON Lines from standard input, and print one report per line, in order")
  static let urlScheme = Option(
    "url-scheme", takes: .required("SCHEME"), "URL scheme of a raw request, http or https; default: https")
  static let now = Option(
    "now", takes: .required("T"),
    "use T as the current time, in seconds since 1970, 1 to 999999999999; for test vectors")

  static let cover = Option(
    "cover", takes: .required("A,B"),
    "header fields (netopt1) or components (rfc9421) that sign includes and that verify requires")
  static let region = Option("region", takes: .required("REGION"), "sigv4: region, such as us-east-1")
  static let service = Option("service", takes: .required("SERVICE"), "sigv4: service, such as execute-api")
  static let presign = Option(
    "presign", takes: .required("SECONDS"),
    "sigv4: put the signature into the URL, valid for SECONDS, 1 to 604800")
  static let api = Option(
    "api", takes: .required("NAME"),
    "salted-md5: name of the API; default: the path without its leading slash")
  static let hash = Option(
    "hash", takes: .required("HASH"), "salted-md5: hash function, md5, sha1 or sha256; default: md5")
  static let rounds = Option(
    "rounds", takes: .required("N"), "salted-md5: number of hash rounds, 1 to 1000; default: 2")
  static let secretPlace = Option(
    "secret-place", takes: .required("PLACE"),
    "salted-md5: place of the secret, prefix or suffix; default: prefix")
  static let saltPlace = Option(
    "salt-place", takes: .required("PLACE"),
    "salted-md5: place of the salt, prefix or suffix; default: suffix")
  static let keepEmpty = Option("keep-empty", "salted-md5: include parameters with empty values")
  static let encodeValues = Option("encode-values", "salted-md5: percent-encode keys and values")

  static let keyGroup = OptionGroup("Keys", [keys, keyID, scheme, allowWeak])
  static let schemeGroup = OptionGroup(
    "Scheme",
    [
      options, cover, region, service, presign, api, hash, rounds, secretPlace, saltPlace, keepEmpty,
      encodeValues,
    ])
  static let requestGroup = OptionGroup(
    "Request",
    [RequestArguments.method, RequestArguments.header, RequestArguments.data, http, jsonl, urlScheme])

  /// Reads the key ring.
  static func ring(_ arguments: Arguments) throws -> KeyRing {
    guard let file = arguments.value(of: keys) else {
      throw UsageError("--keys FILE is missing; to create a key ring, run: netopt keys new")
    }
    return try KeyRing.load(file)
  }

  /// Returns the scheme from `--scheme`; `nil` without the option.
  static func schemeName(_ arguments: Arguments) throws(UsageError) -> SchemeName? {
    try arguments.choice(scheme, of: SchemeName.self)
  }

  /// Returns the time from `--now`, or else the current time, in seconds since 1970.
  static func moment(_ arguments: Arguments, in context: CommandContext) throws(UsageError) -> Int64 {
    try arguments.integer(now, in: 1...999_999_999_999).map(Int64.init)
      ?? Int64(context.now().timeIntervalSince1970)
  }

  /// Returns the options of the scheme as a JSON object: the value of `--options`, or else an object with the
  /// values of `--cover`, `--region` and the other individual options.
  static func schemeOptions(_ arguments: Arguments, _ scheme: SchemeName) throws(UsageError) -> JSONPart? {
    let text: [UInt8]
    if let given = arguments.value(of: options) {
      text = Array(given.utf8)
    } else {
      text = try object(arguments, scheme).bytes()
    }
    do { return try JSONDocument.read(SecretBytes(copying: text)) } catch {
      throw UsageError("--options is not valid JSON: \(error.location): \(error.rule)")
    }
  }

  /// Returns a JSON object with the values of the individual options, such as `--cover` and `--region`. The
  /// members are those of `--options`.
  private static func object(_ arguments: Arguments, _ scheme: SchemeName) throws(UsageError) -> JSONValue {
    var object: JSONValue = [:]
    if let names = arguments.value(of: cover) {
      let list = names.split(separator: ",").map { JSONValue.string(String($0)) }
      object.append(scheme == .rfc9421 ? "components" : "headers", .array(list))
    }
    for (option, name) in [
      (region, "region"), (service, "service"), (api, "api"), (hash, "hash"), (secretPlace, "secret"),
      (saltPlace, "salt"),
    ] {
      if let value = arguments.value(of: option) { object.append(name, .string(value)) }
    }
    if let seconds = try arguments.integer(presign, in: 1...604_800) {
      object.append("presign_seconds", .integer(Int64(seconds)))
    }
    if let count = try arguments.integer(rounds, in: 1...1000) {
      object.append("rounds", .integer(Int64(count)))
    }
    if arguments.has(keepEmpty) { object.append("keep_empty", true) }
    if arguments.has(encodeValues) { object.append("encode", true) }
    return object
  }

  /// Creates the scheme with its options.
  ///
  /// - Parameter isLenient: whether a verifier of `rfc9421` requires no signed components if the options name
  ///   none. `verify` passes true. `sign` passes false, which has no effect. See `SchemeOptions.scheme`.
  static func scheme(
    _ name: SchemeName, _ options: JSONPart?, isLenient: Bool, _ keys: KeyRing
  ) throws(UsageError) -> any SigningScheme {
    do { return try SchemeOptions.scheme(name, options, isLenient: isLenient, keys: keys) } catch {
      throw UsageError("the options of \(name.rawValue) are invalid: \(error.detail)")
    }
  }

  /// Returns the request from the file of `--http`, or else the request from the URL and curl's options.
  static func request(_ arguments: Arguments, in context: CommandContext) throws -> SigningRequest {
    if let file = arguments.value(of: http) {
      guard arguments.operands.isEmpty else {
        throw UsageError("--http and a URL both give the request; remove one of them")
      }
      let message = try context.read(file, upTo: largestMessage, for: .sign)
      guard message.count <= largestMessage else {
        throw SigningFault(.malformedRequest, "the message is larger than \(largestMessage >> 20) MiB")
      }
      return try SigningRequest(http: message, scheme: try messageScheme(arguments))
    }
    guard arguments.operands.count == 1 else {
      throw UsageError("a request is missing: give a URL with curl's options, --http FILE, or --jsonl")
    }
    let parts = try RequestArguments.parts(arguments, in: context)
    return try SigningRequest(
      parts.method, rawURL: arguments.operands[0], headers: parts.headers, body: parts.body)
  }

  /// The maximum size of a raw message, and of a line of JSON Lines, in bytes.
  static let largestMessage = 256 << 20

  /// Returns the URL scheme of a raw message, which does not contain it: `--url-scheme`, or else https.
  private static func messageScheme(_ arguments: Arguments) throws(UsageError) -> Origin.Scheme {
    guard let name = arguments.value(of: urlScheme) else { return .https }
    guard let scheme = Origin.Scheme(rawValue: name) else {
      throw UsageError("--url-scheme takes http or https, not \"\(name)\"")
    }
    return scheme
  }
}
