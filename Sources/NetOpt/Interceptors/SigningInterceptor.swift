import FoundationEssentials
import NetOptCore
import NetOptCrypto
import NetOptLocking
import NetOptSigning

/// Signs each attempt anew. The interceptor is the innermost one, so that host, body and time are final and
/// each attempt has its own nonce.
///
/// A server may refuse a request because the signer's clock is wrong. It then answers with 401 or 403, or
/// with 400 as AWS does. If the `Date` of this response is at least 60 s away from the time in the signature,
/// the interceptor sends the request once more, signed with the corrected time. It also keeps the difference
/// for later requests to the origin. The second request is safe after a 401 or 403, because the server has
/// not carried out the first one. A 400 may have another reason, so after a 400 the interceptor sends the
/// request again only if it may be repeated.
///
/// The interceptor believes only a server that proved its name with TLS (except with `trustsPlainDates`), and
/// only a difference of at most a day. It does not believe a response from a cache on the path: the `Date` of
/// such a response is the time when the origin made it, which may be long ago.
struct SigningInterceptor: Interceptor {
  private let configuration: ClientConfiguration.Signing
  /// The signer's clock, in seconds since 1970.
  private let now: @Sendable () -> Int64
  private let commands: SecretCommands
  private let waits: BoundedWaits
  /// For each origin, the seconds that the interceptor adds to the signer's clock.
  private let offsets = ClockOffsets()

  init(
    _ configuration: ClientConfiguration.Signing, _ timeSource: any TimeSource = SystemTimeSource(),
    _ waits: BoundedWaits = BoundedWaits(SystemTimeSource()),
    now: @escaping @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }
  ) {
    self.configuration = configuration
    self.now = now
    self.waits = waits
    commands = SecretCommands(configuration.signer, timeSource)
  }

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    guard configuration.hosts.contains(request.url.origin.host) else {
      return try await next.proceed(request)
    }
    // `SecretInterceptor` has already run the commands. But a command that failed there may be due for
    // another run now.
    if commands.isNeeded { try await commands.run(until: next.deadline) }
    let used = offsets.seconds(of: request.url.origin)
    let digest = request.body.isInMemory ? nil : try await digest(of: request, until: next.deadline)
    let response = try await next.proceed(try signed(request, used, digest))
    // Refusals are rare. Their code is in another function, because its local variables would enlarge the
    // frame of every waiting call.
    guard Self.mayRefuseTheTime(response) else { return response }
    return try await repeated(request, after: response, signedWith: used, digest, next)
  }

  /// Whether the server may have refused the request because of the time in its signature.
  private static func mayRefuseTheTime(_ response: NetOptResponse) -> Bool {
    [400, 401, 403].contains(response.status)
  }

  /// Sends a refused request again with a corrected time. Returns the refusal itself when the time does not
  /// explain it, and when the request must not be sent again.
  ///
  /// - Parameters:
  ///   - response: the response that refuses the request.
  ///   - used: the seconds that were added to the signer's clock for the signature of the refused request.
  ///   - digest: the digest of a body that is not in memory.
  private func repeated(
    _ request: NetOptRequest, after response: NetOptResponse, signedWith used: Int64, _ digest: [UInt8]?,
    _ next: InterceptorChain
  ) async throws(NetOptError) -> NetOptResponse {
    // A response with an `Age` was not made for this request (RFC 9111, section 5.1).
    guard response.tls?.verified == true || configuration.trustsPlainDates,
      response.head.first("Age") == nil,
      let date = response.head.first("Date"), let serverTime = CivilTime(http: date, near: now())?.seconds,
      let offset = offsets.learn(from: request.url.origin, serverTime: serverTime, localTime: now()),
      // Concurrent requests that were signed with the same wrong time may have corrected the clock already.
      // So the new offset is compared with the offset that this request was signed with.
      abs(offset - used) >= ClockOffsets.least,
      response.status != 400 || request.mayBeRepeated
    else { return response }
    return try await next.proceed(try signed(request, offset, digest))
  }

  /// Reads a body that is not in memory, such as a file, and returns its SHA-256 digest. Not inlined: its
  /// local variables would enlarge the frame of every waiting call.
  ///
  /// - Throws: `signingFailed` for a stream that can be read only once; the errors of the body; `timeout`,
  ///   `cancelled` or `shutDown`.
  @inline(never)
  private func digest(
    of request: NetOptRequest, until deadline: MonotonicInstant?
  ) async throws(NetOptError) -> [UInt8] {
    guard case .stream(_, true, let makeIterator) = request.body.source else {
      throw NetOptError(
        .signingFailed, phase: .sign,
        "\(request.url.origin) requires signed requests, and netopt cannot sign a body that is a stream; send the body as bytes, or from a file"
      )
    }
    return try await waits.result(
      of: "netopt read the body to sign", in: .sign, until: deadline
    ) { done in
      let task = Task { done(await Self.digest(of: makeIterator)) }
      return { task.cancel() }
    }
  }

  private static func digest(
    of makeIterator: RequestBody.MakeChunks
  ) async -> Result<[UInt8], NetOptError> {
    do {
      var digest = try Digest(.sha256)
      var chunks = makeIterator(.signing)
      while let chunk = try await chunks.next() {
        try Task.checkCancellation()
        digest.update(chunk)
      }
      return .success(try digest.finish())
    } catch let error as NetOptError {
      return .failure(error)
    } catch {
      return .failure(
        NetOptError(.signingFailed, phase: .sign, "the body to sign could not be read: \(error)"))
    }
  }

  /// Signs a request.
  ///
  /// - Parameters:
  ///   - offset: the seconds to add to the signer's clock.
  ///   - digest: the digest of a body that is not in memory.
  private func signed(
    _ request: NetOptRequest, _ offset: Int64, _ digest: [UInt8]?
  ) throws(NetOptError) -> NetOptRequest {
    let body: [UInt8] = if case .bytes(let bytes) = request.body.source { bytes } else { [] }
    let signer = configuration.signer
    let moment = SigningMoment(now: now() + offset)
    let result: SignedRequest
    do throws(SigningFault) {
      var unsigned = SigningRequest(request, body: body)
      unsigned.digestOfBody = digest
      result = try signer.sign(unsigned, at: moment)
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

/// The differences between the clocks of origins and the signer's clock, in seconds. A positive difference
/// means that the origin's clock is ahead. Safe from any thread.
private final class ClockOffsets: Sendable {
  /// The smallest difference that counts, in seconds. Servers tolerate smaller differences, so a smaller one
  /// does not explain a refusal.
  static let least: Int64 = 60
  /// The largest difference that the interceptor believes, in seconds.
  private static let most: Int64 = 86_400
  /// The maximum number of origins with a known difference. One host may have many ports, and each port is
  /// another origin. When a further origin would be added, all differences are dropped and learnt again.
  private static let capacity = 1024

  /// The known differences by origin. An unknown difference is 0.
  private let kept = Locked<[Origin: Int64]>([:])

  /// The difference of an origin's clock; 0 when it is unknown.
  func seconds(of origin: Origin) -> Int64 { kept.withLock { $0.isEmpty ? 0 : $0[origin] ?? 0 } }

  /// Learns the difference of an origin's clock from the time that the origin states. The known difference
  /// stays when the new difference is less than 60 s away from it.
  ///
  /// - Parameters:
  ///   - serverTime: the origin's time, in seconds since 1970.
  ///   - localTime: the signer's time, in seconds since 1970.
  /// - Returns: the difference that is known from now on, in seconds. `nil` when the stated time is more than
  ///   a day off: the interceptor does not believe it.
  func learn(from origin: Origin, serverTime: Int64, localTime: Int64) -> Int64? {
    let difference = serverTime - localTime
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
