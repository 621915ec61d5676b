import NetOptSigning

/// Parser, canonicaliser and verifier of every scheme: a byte that chooses the scheme, options up to a NUL, an HTTP message.
private let keys = KeyRing([
  SigningKey(
    id: "app1.v2", secret: Array("netopt-test-secret-of-32-bytes..".utf8), salt: "salt-2024",
    schemes: Set(SchemeName.allCases), legacy: true),
  SigningKey(id: "app1.v1", secret: Array("older".utf8), schemes: Set(SchemeName.allCases), legacy: true),
])

private let verifier: SignatureVerifier = {
  var policy = SignatureVerifier.Policy()
  policy.allowWeak = true
  policy.explain = true
  policy.diagnose = true
  return SignatureVerifier(keys: keys, nonces: MemoryNonceStore(limit: 1000), policy: policy)
}()

/// What libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = bytes.first else { return 0 }
  let scheme = SchemeName.allCases[Int(first) % SchemeName.allCases.count]
  let parts = bytes.dropFirst().split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
  let options = parts.count > 1 ? String(decoding: parts[0], as: UTF8.self) : "{}"
  guard let request = try? SigningRequest(message: Array(parts.last ?? [])) else { return 0 }
  let expectation = SignatureVerifier.Expectation(now: 1_700_000_000)
  _ = try? verifier.verify(request, scheme: scheme, options: options, expectation)
  // What can be signed is accepted, and an addition to its body is not, unless the scheme leaves it open.
  guard let signer = try? RequestSigner(keys: keys, keyID: "app1.v2"), let signed = try? signer.sign(request)
  else {
    return 0
  }
  var sent = request
  for field in signed.headers { sent.headers[field.name] = field.value }
  // A Content-Digest that came in may be wrong.
  let report = verifier.verify(sent)
  precondition(report.isValid || report.reason == .bodyMismatch || report.reason == .malformedRequest)
  sent.body.append(0)
  precondition(!verifier.verify(sent).isValid)
  return 0
}
