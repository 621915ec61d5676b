import Glibc
import NetOpt

/// What signing and verifying cost, and whether an unknown key takes as long as a wrong signature.
enum SigningBenchmark {
  static let options = ["-n", "--rounds", "--body"]

  static func run(_ options: Options) throws -> String {
    let count = try options.count("-n", 20_000)
    let rounds = try options.count("--rounds", 40)
    let bench = try Bench(bodyLength: try options.count("--body", 1024))
    var sign: [Double] = []
    var verify: [Double] = []
    var wrong: [Double] = []
    var unknown: [Double] = []
    // Taken in turns, so that what else the machine does falls on all of them.
    for _ in 0..<rounds {
      sign.append(try microseconds(count / rounds) { _ = try bench.signer.sign(bench.request) })
      verify.append(try microseconds(count / rounds) { try bench.accept() })
      wrong.append(try microseconds(count / rounds) { try bench.refuse(bench.wrong, .signatureMismatch) })
      unknown.append(try microseconds(count / rounds) { try bench.refuse(bench.unknown, .unknownKey) })
    }
    let difference = zip(unknown, wrong).map { $0 - $1 }
    let mean = difference.reduce(0, +) / Double(rounds)
    let variance = difference.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(max(rounds - 1, 1))
    let error = (variance / Double(rounds)).squareRoot()
    func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
    return """
      {"sign_us": \(median(sign)), "verify_us": \(median(verify)), "wrong_signature_us": \(median(wrong)), \
      "unknown_key_us": \(median(unknown)), "unknown_minus_wrong_us": \(mean), "standard_error_us": \(error), \
      "within_noise": \(abs(mean) <= 4 * error || abs(mean) < 0.1)}
      """
  }

  private static func microseconds(_ count: Int, _ work: () throws -> Void) throws -> Double {
    var before = timespec()
    var after = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before)
    for _ in 0..<max(count, 1) { try work() }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after)
    let nanoseconds = (after.tv_sec - before.tv_sec) * 1_000_000_000 + after.tv_nsec - before.tv_nsec
    return Double(nanoseconds) / 1000 / Double(max(count, 1))
  }

  private struct Bench {
    let signer: RequestSigner
    let verifier: SignatureVerifier
    let request: SigningRequest
    let signed: SigningRequest
    let wrong: SigningRequest
    let unknown: SigningRequest

    init(bodyLength: Int) throws {
      let key = SigningKey(id: "app1.v2", secret: Array("netopt-test-secret".utf8), salt: "salt-2024")
      let keys = KeyRing([key])
      signer = try RequestSigner(keys: keys, keyID: "app1.v2")
      // Without nonces: what a store costs is the store's affair.
      verifier = SignatureVerifier(keys: keys, nonces: nil)
      request = try SigningRequest(
        "POST", "https://api.example.com/user/search?q=a%20b&page=2",
        headers: ["Content-Type": "application/json"],
        body: [UInt8](repeating: 0x78, count: bodyLength))
      var signed = request
      for field in try signer.sign(request).headers { signed.headers[field.name] = field.value }
      self.signed = signed
      let value = signed.headers["Authorization"] ?? ""
      var wrong = signed
      wrong.headers["Authorization"] = String(value.dropLast(2)) + (value.hasSuffix("00") ? "11" : "00")
      self.wrong = wrong
      var unknown = signed
      unknown.headers["Authorization"] = value.replacing("app1.v2", with: "app9.v2")
      self.unknown = unknown
    }

    func accept() throws { try expect(signed, .ok) }

    func refuse(_ request: SigningRequest, _ reason: Reason) throws { try expect(request, reason) }

    private func expect(_ request: SigningRequest, _ reason: Reason) throws {
      let report = verifier.verify(request)
      guard report.reason == reason else {
        throw UsageError("the verdict is \(report.reason), not \(reason)")
      }
    }
  }
}
