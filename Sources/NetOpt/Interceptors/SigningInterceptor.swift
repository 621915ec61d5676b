import FoundationEssentials
import NetOptCore
import NetOptLocking
import NetOptSigning

/// Signs each attempt afresh: innermost, so that host, body and time are final and every attempt has a nonce of its own.
///
/// A server that refuses a request (401, 403, or 400 as AWS does it) and whose `Date` is far from the signer's clock says that the
/// time is off. The difference is kept for later requests to its origin, and this one is repeated once: the server has
/// refused it, so it was not carried out. A 400 may say something else, and a request that must not be repeated is not after
/// one. Only a server that proved its name is believed, no more than a day, and not by an answer
/// that a cache on the way has kept: the time of its `Date` is past.
struct SigningInterceptor: Interceptor {
  private let configuration: ClientConfiguration.Signing
  private let now: @Sendable () -> Int64
  private let commands: SecretCommands
  private let offsets = ClockOffsets()

  init(
    _ configuration: ClientConfiguration.Signing, _ timeSource: any TimeSource = SystemTimeSource(),
    now: @escaping @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }
  ) {
    self.configuration = configuration
    self.now = now
    commands = SecretCommands(configuration.signer, timeSource)
  }

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    guard configuration.hosts.contains(request.url.origin.host) else {
      return try await next.proceed(request)
    }
    // A command that failed before the cache was asked may be run again by now.
    if commands.isNeeded { try await commands.run(until: next.deadline) }
    let used = offsets.seconds(of: request.url.origin)
    let response = try await next.proceed(try signed(request, used))
    // What follows is rare, and would need room in every call that waits.
    guard Self.mayRefuseTheTime(response) else { return response }
    return try await repeated(request, after: response, signedWith: used, next)
  }

  private static func mayRefuseTheTime(_ response: NetOptResponse) -> Bool {
    [400, 401, 403].contains(response.status)
  }

  private func repeated(
    _ request: NetOptRequest, after response: NetOptResponse, signedWith used: Int64, _ next: InterceptorChain
  ) async throws(NetOptError) -> NetOptResponse {
    // RFC 9111, section 5.1: what has an Age was not made for this request.
    guard response.tls?.verified == true || configuration.trustsPlainDates,
      response.head.first("Age") == nil,
      let date = response.head.first("Date"), let theirs = CivilTime(http: date, near: now())?.seconds,
      let offset = offsets.learn(from: request.url.origin, theirs: theirs, ours: now()),
      // Others that were under way with the same wrong time may have learnt it before.
      abs(offset - used) >= ClockOffsets.least,
      response.status != 400 || request.mayBeRepeated
    else { return response }
    return try await next.proceed(try signed(request, offset))
  }

  private func signed(_ request: NetOptRequest, _ offset: Int64) throws(NetOptError) -> NetOptRequest {
    let body: [UInt8]
    switch request.body.source {
    case .none: body = []
    case .bytes(let bytes): body = bytes
    case .stream:
      throw NetOptError(
        .signingFailed, phase: .sign,
        "\(request.url.origin) is signed, and a body that is a stream cannot be: send its bytes")
    }
    let signer = configuration.signer
    let moment = SigningMoment(now: now() + offset)
    let result: SignedRequest
    do throws(SigningFault) {
      result = try signer.sign(SigningRequest(request, body: body), at: moment)
    } catch {
      throw error.signingError
    }
    var request = request
    for field in result.headers { request.headers[field.name] = field.value }
    if let query = result.query {
      request.url = HTTPURL(origin: request.url.origin, target: "\(request.url.path)?\(query)")
    }
    return request
  }
}

/// How far the clocks of origins are ahead of ours, as far as they have told.
private final class ClockOffsets: Sendable {
  /// Less is no reason for a server to refuse, in seconds.
  static let least: Int64 = 60
  /// Nobody is believed more.
  private static let most: Int64 = 86_400
  /// The most origins that are remembered: one host may have many ports. When there are more, all are learnt anew.
  private static let capacity = 1024

  private let kept = Locked<[Origin: Int64]>([:])

  func seconds(of origin: Origin) -> Int64 { kept.withLock { $0.isEmpty ? 0 : $0[origin] ?? 0 } }

  /// Takes over what an origin says.
  ///
  /// - Returns: how far its clock is ahead, or `nil` when that is not believed.
  func learn(from origin: Origin, theirs: Int64, ours: Int64) -> Int64? {
    let difference = theirs - ours
    guard abs(difference) <= Self.most else { return nil }
    return kept.withLock { kept in
      let known = kept[origin] ?? 0
      guard abs(difference - known) >= Self.least else { return known }
      if kept.count >= Self.capacity { kept.removeAll() }
      kept[origin] = difference
      return difference
    }
  }
}
