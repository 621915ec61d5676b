import FoundationEssentials
import NetOptCore
import NetOptCrypto
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptSigning

/// Checks netopt against two Python packages of PyPI, the peers: http-message-signatures (RFC 9421) and
/// botocore (SigV4). netopt verifies signatures of the peers, and the peers verify signatures of netopt.
@Suite(
  .enabled("the Python packages are not there: run scripts/signing-peers, which needs PyPI") {
    try await Peers.areInstalled
  })
struct PeerTests {
  /// The time of signing and of verification, in seconds since 1970.
  private static let now: Int64 = 1_700_000_000

  /// A key ring with the keys for RFC 9421.
  private let ring: KeyRing
  /// A key ring with the key for SigV4.
  private let aws: KeyRing

  init() throws {
    let vectors = try VectorTests.Vectors()
    ring = try #require(vectors.rings["main"])
    aws = try #require(vectors.rings["aws"])
  }

  @Test("netopt verifies the peers' signatures, and refuses them for another method")
  func peersSign() async throws {
    let lines = try await Peers.run(["sign"]).split(separator: "\n")
    #expect(lines.count == 140)
    for text in lines {
      let item = try JSONDocument.read(SecretBytes(copying: Array(text.utf8)))
      let isAWS = try item.required("kind").string() == "sigv4"
      let line = try SigningLine(item.required("line"))
      let scheme = try SchemeOptions.scheme(
        isAWS ? .sigv4 : .rfc9421, nil, isLenient: true, keys: ring)
      let verifier = SignatureVerifier(keys: isAWS ? aws : ring, nonces: nil)
      let report = verifier.verify(line.request, scheme: scheme, .init(now: Self.now))
      #expect(report.isValid, "\(report.reason): \(report.detail): \(text)")
      var changed = line.request
      changed.method += "X"
      #expect(verifier.verify(changed, scheme: scheme, .init(now: Self.now)).reason == .signatureMismatch)
    }
  }

  @Test("the peers verify netopt's signatures")
  func peersVerify() async throws {
    let algorithms = [
      ("hmac-sha256", "test-shared-secret"), ("ed25519", "test-key-ed25519"),
      ("ecdsa-p256-sha256", "test-key-ecc-p256"),
      ("rsa-pss-sha512", "test-key-rsa"), ("rsa-v1_5-sha256", "test-key-rsa"),
    ]
    var lines: [String] = []
    for request in try Self.requests() {
      for (algorithm, key) in algorithms {
        var options = RFC9421.Options()
        options.algorithm = RFC9421.Algorithm(algorithm)
        var names = ["@method", "@authority", "@target-uri", "@query"]
        if !request.body.isEmpty { names += ["content-digest", "content-type"] }
        options.components = names.map { SignatureComponent($0) }
        lines.append(try Self.line(algorithm, request, RFC9421(options), try #require(ring[key])))
      }
      var options = SigV4.Options()
      options.region = "eu-west-1"
      options.service = "execute-api"
      lines.append(try Self.line("sigv4", request, SigV4(options), try #require(aws.keys.first)))
    }
    let file = try TemporaryDirectory.make("peers") + "/lines"
    try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: file))
    #expect(try await Peers.run(["verify", file]) == "\(lines.count)\n")
  }

  /// The requests that netopt signs for the peers.
  private static func requests() throws -> [SigningRequest] {
    let body = Array(#"{"hello": "world"}"#.utf8)
    return [
      try SigningRequest("GET", "https://api.example.com/"),
      try SigningRequest("DELETE", "https://api.example.com/a/b%20c/%C3%A9?b=2&a=%20&a=1"),
      try SigningRequest(
        "POST", "https://api.example.com/orders?x=", headers: ["Content-Type": "application/json"], body: body
      ),
      try SigningRequest(
        "PUT", "https://api.example.com:8443/x", headers: ["Content-Type": "text/plain", "X-Trace": "a b"],
        body: body),
    ]
  }

  /// A request with a signature of netopt, as a JSON line that the peers read. `kind` names the scheme, and
  /// for RFC 9421 the algorithm.
  private static func line(
    _ kind: String, _ request: SigningRequest, _ scheme: any SigningScheme, _ key: SigningKey
  ) throws -> String {
    let signed = try scheme.sign(request, with: key, at: SigningMoment(now: now))
    var headers = request.headers
    for field in signed.headers { headers[field.name] = field.value }
    let json: JSONValue = [
      "kind": .string(kind), "method": .string(request.method),
      "url": .string("https://\(request.authority)\(request.path)" + (request.query.map { "?\($0)" } ?? "")),
      "headers": .array(headers.map { [.string($0.name), .string($0.value)] }),
      "body_base64": .string(Base64.text(request.body)),
    ]
    return json.description
  }
}

/// Runs the peers in the Python environment that scripts/signing-peers makes.
private enum Peers {
  /// The Python interpreter of the environment.
  private static let python = RepositoryFile.path(".build/signing-peers/bin/python")

  /// Whether the environment exists and has the packages.
  static var areInstalled: Bool {
    get async throws {
      guard FileManager.default.isExecutableFile(atPath: python) else { return false }
      return try await start(["-c", "import botocore, http_message_signatures, requests"]).status == 0
    }
  }

  /// Runs Tests/Vectors/peers.py with these arguments and returns its output.
  static func run(_ arguments: [String]) async throws -> String {
    let (status, output) = try await start([RepositoryFile.path("Tests/Vectors/peers.py")] + arguments)
    #expect(status == 0, "\(output)")
    return output
  }

  /// Runs Python until it ends. `status` is its exit status in the form of waitpid(2).
  private static func start(_ arguments: [String]) async throws -> (status: Int32?, output: String) {
    let child = try ChildProcess(python, arguments, in: try TemporaryDirectory.make("peers"))
    try await wait(for: "the peers to end", within: .seconds(120)) { child.exitStatus() != nil }
    // Foundation's `Data` leaks a buffer for an empty file.
    let output = try FileBytes.read(child.output, upTo: 16 << 20, as: "the test's", in: .list)
    return (child.exitStatus(), String(decoding: output, as: UTF8.self))
  }
}
