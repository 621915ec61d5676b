import FoundationEssentials
import NetOptCore
import NetOptCrypto
import NetOptSigning

/// The options that `sign` and `verify` share: keys, scheme, and the source of the request.
enum SigningOptions {
  static let keys = Option(
    "keys", takes: .required("FILE"), "the key ring; nobody but its owner may read it",
    environment: "NETOPT_KEYS")
  static let keyID = Option("key-id", takes: .required("ID"), "which key of the ring")
  static let scheme = Option(
    "scheme", takes: .required("NAME"),
    "netopt1, rfc9421, sigv4, salted-md5 or sealed-key; default: netopt1, and to verify the one that the request shows, "
      + "which is never a weak one")
  static let allowWeak = Option("allow-weak", "allow salted-md5, which is weak: docs/signing.md says how")
  static let options = Option(
    "options", takes: .required("JSON"),
    "the scheme's options as in JSON Lines; stands in for the options below")

  static let http = Option(
    "http", takes: .required("FILE"), "read a raw HTTP/1.1 request; - is standard input")
  static let jsonl = Option(
    "jsonl", "read JSON Lines from standard input, a request a line, and print one report a line, in order")
  static let urlScheme = Option(
    "url-scheme", takes: .required("SCHEME"), "http or https, for a raw request; default: https")
  static let now = Option(
    "now", takes: .required("T"), "the present moment in seconds since 1970, 1 to 999999999999, for vectors")

  static let cover = Option(
    "cover", takes: .required("A,B"), "the fields (netopt1) or components (rfc9421) to sign, or to insist on")
  static let region = Option("region", takes: .required("REGION"), "sigv4: the region, as us-east-1")
  static let service = Option("service", takes: .required("SERVICE"), "sigv4: the service, as execute-api")
  static let presign = Option(
    "presign", takes: .required("SECONDS"),
    "sigv4: put the signature into the URL, valid for so long, 1 to 604800")
  static let api = Option(
    "api", takes: .required("NAME"), "salted-md5: the API; default: the path without its slash")
  static let hash = Option("hash", takes: .required("HASH"), "salted-md5: md5, sha1 or sha256; default: md5")
  static let rounds = Option(
    "rounds", takes: .required("N"), "salted-md5: how often is hashed, 1 to 1000; default: 2")
  static let secretPlace = Option(
    "secret-place", takes: .required("PLACE"), "salted-md5: the secret as prefix or suffix; default: prefix")
  static let saltPlace = Option(
    "salt-place", takes: .required("PLACE"), "salted-md5: the salt as prefix or suffix; default: suffix")
  static let keepEmpty = Option("keep-empty", "salted-md5: hash parameters with empty values too")
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
      throw UsageError("--keys FILE is missing; netopt keys new makes a key ring")
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

  /// Returns the options of the scheme: `--options`, or else the JSON object for the individual options.
  static func schemeOptions(_ arguments: Arguments, _ scheme: SchemeName) throws(UsageError) -> JSONPart? {
    let text: [UInt8]
    if let given = arguments.value(of: options) {
      text = Array(given.utf8)
    } else {
      text = try object(arguments, scheme).bytes()
    }
    do { return try JSONDocument.read(SecretBytes(copying: text)) } catch {
      throw UsageError("--options is no JSON: \(error.location): \(error.rule)")
    }
  }

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
  static func scheme(
    _ name: SchemeName, _ options: JSONPart?, isLenient: Bool, _ keys: KeyRing
  ) throws(UsageError) -> any SigningScheme {
    do { return try SchemeOptions.scheme(name, options, isLenient: isLenient, keys: keys) } catch {
      throw UsageError("the options of \(name.rawValue) are wrong: \(error.detail)")
    }
  }

  /// Returns the request that the command line describes, as a raw message or with curl's options.
  static func request(_ arguments: Arguments, in context: CommandContext) throws -> SigningRequest {
    if let file = arguments.value(of: http) {
      guard arguments.operands.isEmpty else {
        throw UsageError("--http and a URL both say what the request is; give one of them up")
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

  private static func messageScheme(_ arguments: Arguments) throws(UsageError) -> Origin.Scheme {
    guard let name = arguments.value(of: urlScheme) else { return .https }
    guard let scheme = Origin.Scheme(rawValue: name) else {
      throw UsageError("--url-scheme is http or https, not \"\(name)\"")
    }
    return scheme
  }
}
