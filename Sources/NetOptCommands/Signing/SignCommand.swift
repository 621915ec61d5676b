import NetOptCore
import NetOptSigning

/// `netopt sign`: signs requests and prints the header fields or the URL with the signature.
struct SignCommand: Command {
  private static let nonce = Option(
    "nonce", takes: .required("NONCE"), "use this nonce, for test vectors; default: a new random nonce")
  private static let explain = Option(
    "explain", "show the canonical request and the string to sign")

  let declaration = CommandDeclaration(
    name: "sign",
    summary: "sign a request and print the header fields to add",
    details: """
      Reads a URL with curl's options, a raw HTTP/1.1 request (--http), or JSON Lines (--jsonl), and prints \
      the header fields that carry the signature. With --presign it prints the URL. The command sends \
      nothing.

      A Host field replaces the host of the URL. The command reads secrets only from the key ring and never \
      prints them.
      """,
    operands: "[URL]", operandCount: 0...1,
    options: [
      SigningOptions.requestGroup, SigningOptions.keyGroup, SigningOptions.schemeGroup,
      OptionGroup("Vectors", [SigningOptions.now, nonce]), OptionGroup("Output", [explain, .json]),
    ],
    examples: [
      .init(
        "netopt sign --keys keys.json --key-id app1.v2 -d @order.json https://api.example.com/orders",
        "prints the Authorization field of a POST"),
      .init(
        "netopt sign --keys keys.json --key-id AKIDEXAMPLE --scheme sigv4 --region us-east-1 --service s3 --presign 600 "
          + "https://bucket.s3.amazonaws.com/file", "prints a presigned URL"),
      .init("netopt sign --keys keys.json --jsonl < requests.jsonl", "signs one request per line"),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let keys = try SigningOptions.ring(arguments)
    if arguments.has(SigningOptions.jsonl) { return try lines(arguments, keys, in: context) }
    let name = try SigningOptions.schemeName(arguments) ?? .netopt1
    let options = try SigningOptions.schemeOptions(arguments, name)
    let scheme = try SigningOptions.scheme(name, options, isLenient: false, keys)
    do {
      let request = try SigningOptions.request(arguments, in: context)
      let signed = try sign(
        request, scheme, keys, arguments.value(of: SigningOptions.keyID),
        SigningMoment(
          now: try SigningOptions.moment(arguments, in: context),
          nonce: arguments.value(of: Self.nonce)), arguments)
      let line = SignedLine(id: nil, request, signed, explains: arguments.has(Self.explain))
      if arguments.has(.json) { try context.print(line.json) } else { try context.output.write(line.text) }
      return .ok
    } catch let fault as SigningFault {
      if arguments.has(.json) { try context.print(SignedLine.failure(id: nil, fault)) }
      throw fault.signingError
    }
  }

  /// Signs a request.
  ///
  /// - Parameter keyID: the id of the key; `nil` for the only key of a key ring with one key.
  private func sign(
    _ request: SigningRequest, _ scheme: any SigningScheme, _ keys: KeyRing, _ keyID: String?,
    _ moment: SigningMoment, _ arguments: Arguments
  ) throws -> SignedRequest {
    var id = keyID
    if id == nil, keys.keys.count == 1 { id = keys.keys[0].id }
    guard let id else { throw UsageError("--key-id ID is missing: the key ring has \(keys.keys.count) keys") }
    let signer = try RequestSigner(
      keys: keys, keyID: id, scheme: scheme, allowWeak: arguments.has(SigningOptions.allowWeak))
    return try signer.sign(request, at: moment)
  }

  // MARK: JSON Lines

  /// Signs the request in each line of standard input and prints a line for each.
  private func lines(
    _ arguments: Arguments, _ keys: KeyRing, in context: CommandContext
  ) throws -> ExitCode {
    var reader = LineReader(context.input, limit: SigningOptions.largestMessage)
    var code = ExitCode.ok
    while let text = try reader.next() {
      do {
        try context.print(try answer(text, arguments, keys, in: context))
      } catch let failure as SigningLine.Fault {
        code = .failed
        try context.print(SignedLine.failure(id: failure.id, failure.fault))
      }
    }
    return code
  }

  /// Signs the request in a line. The members of the line override the options from the command line.
  private func answer(
    _ text: [UInt8], _ arguments: Arguments, _ keys: KeyRing, in context: CommandContext
  ) throws -> JSONValue {
    let line = try SigningLine(text)
    do {
      let name = try line.scheme ?? SigningOptions.schemeName(arguments) ?? .netopt1
      let options = try line.options ?? SigningOptions.schemeOptions(arguments, name)
      let scheme = try SchemeOptions.scheme(name, options, isLenient: false, keys: keys)
      let now = try line.now ?? SigningOptions.moment(arguments, in: context)
      let signed = try sign(
        line.request, scheme, keys, line.keyID ?? arguments.value(of: SigningOptions.keyID),
        SigningMoment(now: now, nonce: line.nonce), arguments)
      return SignedLine(id: line.id, line.request, signed, explains: arguments.has(Self.explain)).json
    } catch let fault as SigningFault {
      throw SigningLine.Fault(id: line.id, fault: fault)
    } catch let fault as OptionFault {
      throw SigningLine.Fault(id: line.id, fault: SigningFault(.malformedRequest, "options: \(fault.detail)"))
    } catch let error as UsageError {
      throw SigningLine.Fault(id: line.id, fault: SigningFault(.unknownKey, error.message))
    }
  }
}

/// The output of `netopt sign` for one request.
struct SignedLine {
  /// The `id` member of the input line; `nil` without `--jsonl`.
  private let id: JSONValue?
  private let request: SigningRequest
  /// The result of signing `request`.
  private let signed: SignedRequest
  /// Whether the output contains the canonical request and the string to sign (`--explain`).
  private let explains: Bool

  init(id: JSONValue?, _ request: SigningRequest, _ signed: SignedRequest, explains: Bool) {
    self.id = id
    self.request = request
    self.signed = signed
    self.explains = explains
  }

  /// The URL with the signature; `nil` when header fields carry the signature.
  private var url: String? {
    signed.query.map { "\(request.scheme.rawValue)://\(request.authority)\(request.path)?\($0)" }
  }

  /// The output as a JSON object (docs/schemas/sign.schema.json).
  var json: JSONValue {
    var json: JSONValue = [:]
    if let id { json.append("id", id) } else { json.append("schema_version", 1) }
    json.append("scheme", .string(signed.scheme.rawValue))
    json.append("key_id", .string(signed.keyID))
    json.append(
      "headers", .array(signed.headers.map { [.string($0.name), .string($0.value)] }))
    if let url { json.append("url", .string(url)) }
    if explains {
      if let canonical = signed.canonicalRequest { json.append("canonical_request", .string(canonical)) }
      json.append("string_to_sign", .string(signed.stringToSign))
    }
    json.append("signature", .string(signed.signature))
    return json
  }

  /// Returns the JSON object for a request that could not be signed.
  static func failure(id: JSONValue?, _ fault: SigningFault) -> JSONValue {
    var json: JSONValue = [:]
    if let id { json.append("id", id) } else { json.append("schema_version", 1) }
    json.append("error", ["code": .string(fault.reason.rawValue), "message": .string(fault.detail)])
    return json
  }

  /// The output as text: the header fields to add, one per line, and the presigned URL. With `--explain`, the
  /// canonical request and the string to sign come first, on lines that start with "#".
  var text: String {
    var lines: [String] = []
    if explains {
      if let canonical = signed.canonicalRequest { lines += Self.commented("canonical request", canonical) }
      lines += Self.commented("string to sign", signed.stringToSign)
    }
    lines += signed.headers.map { "\($0.name): \($0.value)" }
    if let url { lines.append(url) }
    return lines.map { Text.printable($0) + "\n" }.joined()
  }

  private static func commented(_ title: String, _ text: String) -> [String] {
    ["# \(title):"] + text.split(separator: "\n", omittingEmptySubsequences: false).map { "# | \($0)" }
  }
}
