import NetOptCore
import NetOptRouting

/// A TCP handshake.
struct TCPProbe: Probe {
  /// A middlebox may answer for an endpoint that does not.
  var showsRecovery: Bool { false }

  func take(_ sample: ProbeSample, by prober: Prober) async -> Result<ConnectReport, LegError> {
    // For a plain origin the transport stops when TCP is connected.
    let origin = sample.target.origin
    return await sample.connect(Origin(.http, host: origin.host, port: origin.port), by: prober)
  }
}

/// TCP and a full TLS handshake.
struct TLSProbe: Probe {
  func take(_ sample: ProbeSample, by prober: Prober) async -> Result<ConnectReport, LegError> {
    await sample.connect(sample.target.origin, by: prober)
  }
}

extension ProbeSample {
  fileprivate func connect(_ origin: Origin, by prober: Prober) async -> Result<ConnectReport, LegError> {
    do throws(LegError) {
      let endpoint = IPEndpoint(target.address, port: target.origin.port)
      return .success(
        try await prober.transport.connect(to: endpoint, of: origin, within: limit, keep: keep))
    } catch {
      let isExcused = isCut && error.failure.isTimeout
      return .failure(LegError(error.failure, isCancellation: error.isCancellation || isExcused))
    }
  }
}

extension LegFailure {
  /// Whether it is that something took too long.
  fileprivate var isTimeout: Bool { kind == .connectTimeout || kind == .tlsTimeout }
}
