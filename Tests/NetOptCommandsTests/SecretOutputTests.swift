import FoundationEssentials
import Glibc
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import Testing

/// Tests that random secrets in random places do not appear in any output that the program prints or writes
/// for people. The environment variable `SECRET_RUNS` sets the number of runs (default: 100), and
/// `SECRET_SEED` sets the first seed (default: 1). `CanaryTests` tests the secrets of key rings.
@Suite struct SecretOutputTests {
  /// The program, in a new directory.
  private let program: InstalledProgram

  init() throws { program = try InstalledProgram() }

  /// Returns the value of an environment variable as a number; `usual` if it is not set or not a number.
  private static func number(_ name: String, _ usual: UInt64) -> UInt64 {
    ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) } ?? usual
  }

  /// Returns the traces of a secret in a text: any eight consecutive bytes of the secret, or the secret in
  /// base64 (standard or URL-safe, at each of the 3 offsets). Each may be percent-encoded up to five times.
  private static func traces(of secret: String, in text: String) -> [String] {
    let bytes = Array(secret.utf8)
    var forms = (0...(bytes.count - 8)).map { String(decoding: bytes[$0..<$0 + 8], as: UTF8.self) }
    for skipped in 0..<3 {
      let whole = bytes.dropFirst(skipped)
      let base64 = Data(whole.prefix(whole.count / 3 * 3)).base64EncodedString()
      forms += [base64, base64.replacing("+", with: "-").replacing("/", with: "_")]
    }
    var found: Set<String> = []
    var bytesOfText = Array(text.utf8)
    for _ in 0...5 {
      let text = String(decoding: bytesOfText.map { $0 == 0 ? 0x20 : $0 }, as: UTF8.self)
      text.withCString { text in found.formUnion(forms.filter { strstr(text, $0) != nil }) }
      let decoded = PercentEncoding.decoded(bytesOfText)
      if decoded.count == bytesOfText.count { break }
      bytesOfText = decoded
    }
    return found.sorted()
  }

  /// Each run has its own secret. A server on loopback answers all requests. It redirects targets that begin
  /// with /redirect to `location`, which is different in each run.
  @Test("the program shows no part of a random secret and prints no escape character")
  func randomSecrets() async throws {
    let location = Locked("/")
    let server = try LoopbackServer(
      .raw { exchange in
        let isRedirect = exchange.request.target.hasPrefix("/redirect")
        try exchange.respond(
          isRedirect ? 302 : 200, isRedirect ? ["Location": location.withLock(\.self)] : [:])
      })
    defer { server.stop() }
    // The number of runs whose output replaces a part of a text, and for each command the number of runs that
    // succeeded. If the numbers were too low, the test would prove nothing.
    var hidden = 0
    var answered: [String: Int] = [:]
    let first = Self.number("SECRET_SEED", 1)
    for seed in first..<first + Self.number("SECRET_RUNS", 100) {
      var commands = SecretCommands(seed: seed, server: "\(server.endpoint)", directory: program.directory)
      let made = commands.next()
      location.withLock { $0 = made.location.hasPrefix("/") ? "/redirect" + made.location : made.location }
      let ring = "\(program.directory)/ring.json"
      try Files.write(made.ring, to: ring)
      chmod(ring, 0o600)
      let (status, text) = try await program.run(made.arguments, made.environment, lines: made.lines)
      #expect(status & 0x7f == 0, "seed \(seed): ended by a signal: \(made)\n\(text)")
      let traces = Self.traces(of: made.secret, in: text)
      #expect(traces.isEmpty, "seed \(seed): \(traces) of \(made)\n\(text)")
      #expect(!text.utf8.contains(0x1b), "seed \(seed): \(made)\n\(text)")
      if text.contains("[hidden]") || text.contains("…") { hidden += 1 }
      if status == 0 { answered[made.arguments[0], default: 0] += 1 }
    }
    #expect(
      hidden > 10 && ["get", "bench", "fetch", "cache", "sign"].allSatisfy { answered[$0] != nil },
      "\(hidden) \(answered)")
  }
}
