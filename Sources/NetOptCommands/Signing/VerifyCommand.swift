import NetOptCore
import NetOptSigning

/// `netopt verify`: verifies the signatures of requests and reports why a signature is invalid.
struct VerifyCommand: Command {
  private static let explain = Option(
    "explain", "show the string to sign, and search for the signer's mistake that explains a mismatch")
  private static let nonceStore = Option(
    "nonce-store", takes: .required("FILE"),
    "refuse replays; store nonces in the SQLite file FILE, which several processes can share")
  private static let window = Option(
    "window", takes: .required("SECONDS"),
    "maximum difference to the signer's clock, up to 86400; default: 300")
  private static let compare = Option(
    "compare", takes: .required("FILE"),
    "read the string that the signer signed; show the first byte that differs")
  private static let showExpected = Option(
    "show-expected",
    "show the correct signature, which anyone can use without the key; for your own tests only")

  let declaration = CommandDeclaration(
    name: "verify",
    summary: "verify a signed request and explain a failure",
    details: """
      Reads a raw HTTP/1.1 request (--http), a URL with curl's options, or JSON Lines (--jsonl), and prints \
      for each request whether its signature is valid. If it is invalid, the command prints which check \
      failed, and with --explain, which mistake of the signer explains the signature. The command never \
      accepts such a near miss as valid.

      The exit code is 0 if the signature is valid, 1 if it is invalid (with --jsonl, if one line is \
      invalid), and 65 if the command cannot read the input.
      """,
    operands: "[URL]", operandCount: 0...1,
    options: [
      SigningOptions.requestGroup, SigningOptions.keyGroup, SigningOptions.schemeGroup,
      OptionGroup("Verifying", [nonceStore, window, SigningOptions.now]),
      OptionGroup("Output", [explain, compare, showExpected, .json]),
    ],
    examples: [
      .init("netopt verify --keys keys.json --http request.txt --explain", "verifies a captured request"),
      .init(
        "netopt verify --keys keys.json --jsonl --nonce-store nonces.db < requests.jsonl",
        "verifies one request per line, and refuses replays"),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    guard !arguments.has(SigningOptions.jsonl) || arguments.value(of: Self.compare) == nil else {
      throw UsageError("--compare has the string of one request; leave it out with --jsonl")
    }
    let keys = try SigningOptions.ring(arguments)
    let nonces = try arguments.value(of: Self.nonceStore).map { try SQLiteNonceStore($0) }
    var policy = SignatureVerifier.Policy()
    if let seconds = try arguments.integer(Self.window, in: 0...86_400) { policy.window = Int64(seconds) }
    policy.allowWeak = arguments.has(SigningOptions.allowWeak)
    policy.explain = arguments.has(Self.explain)
    policy.diagnose = policy.explain
    policy.showExpected = arguments.has(Self.showExpected)
    let verifier = SignatureVerifier(keys: keys, nonces: nonces, policy: policy)
    return arguments.has(SigningOptions.jsonl)
      ? try lines(arguments, verifier, in: context) : try one(arguments, verifier, in: context)
  }

  /// Verifies the one request that the command line names.
  private func one(
    _ arguments: Arguments, _ verifier: SignatureVerifier, in context: CommandContext
  ) throws -> ExitCode {
    var expectation = SignatureVerifier.Expectation(
      keyID: arguments.value(of: SigningOptions.keyID),
      now: try SigningOptions.moment(arguments, in: context))
    if let file = arguments.value(of: Self.compare) {
      expectation.stringToSign = try context.readWhole(file, upTo: 1 << 20, for: .sign)
    }
    let named = try SigningOptions.schemeName(arguments)
    let report: VerificationReport
    do {
      let request = try SigningOptions.request(arguments, in: context)
      let name = named ?? SchemeName.detected(in: request)
      let options = try SigningOptions.schemeOptions(arguments, name)
      let scheme = try SigningOptions.scheme(name, options, isLenient: true, verifier.keys)
      report = verifier.verify(request, scheme: scheme, expectation)
    } catch let fault as SigningFault {
      report = VerificationReport(named ?? .netopt1, unread: fault)
    }
    if arguments.has(.json) {
      try context.print(report.json(id: nil))
    } else {
      try context.output.write(VerificationText(report).text)
    }
    return report.isValid ? .ok : .failed
  }

  /// Verifies the request in each line of standard input and prints a report for each.
  private func lines(
    _ arguments: Arguments, _ verifier: SignatureVerifier, in context: CommandContext
  ) throws -> ExitCode {
    var reader = LineReader(context.input, limit: SigningOptions.largestMessage)
    var code = ExitCode.ok
    while let text = try reader.next() {
      let (id, report) = try answer(text, arguments, verifier, in: context)
      if !report.isValid { code = .failed }
      try context.print(report.json(id: id))
    }
    return code
  }

  /// Verifies the request in a line. The members of the line override the options from the command line.
  ///
  /// - Returns: the `id` member of the line, and the report.
  private func answer(
    _ text: [UInt8], _ arguments: Arguments, _ verifier: SignatureVerifier, in context: CommandContext
  ) throws -> (JSONValue, VerificationReport) {
    let named = try SigningOptions.schemeName(arguments)
    let line: SigningLine
    do throws(SigningLine.Fault) { line = try SigningLine(text) } catch {
      return (error.id, VerificationReport(named ?? .netopt1, unread: error.fault))
    }
    let name = line.scheme ?? named ?? SchemeName.detected(in: line.request)
    let options = try line.options ?? SigningOptions.schemeOptions(arguments, name)
    let scheme: any SigningScheme
    do throws(OptionFault) {
      scheme = try SchemeOptions.scheme(name, options, isLenient: true, keys: verifier.keys)
    } catch {
      let fault = SigningFault(.malformedRequest, "options: \(error.detail)")
      return (line.id, VerificationReport(name, unread: fault))
    }
    let now = try line.now ?? SigningOptions.moment(arguments, in: context)
    let expectation = SignatureVerifier.Expectation(
      keyID: line.keyID ?? arguments.value(of: SigningOptions.keyID),
      now: now,
      stringToSign: line.stringToSign.map { Array($0.utf8) })
    return (line.id, verifier.verify(line.request, scheme: scheme, expectation))
  }
}
