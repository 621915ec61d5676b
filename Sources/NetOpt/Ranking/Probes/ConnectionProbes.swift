import NetOptCore
import NetOptRouting

/// The probe method `tcp`, which completes a TCP handshake.
struct TCPProbe: Probe {
  /// False: a middlebox may complete the handshake for an endpoint that is down. Due probes use the default
  /// method instead. For an `http` origin the default method is `tcp`. There a TCP handshake shows that an
  /// endpoint works again which could not be reached.
  var showsRecovery: Bool { false }

  func take(_ sample: ProbeSample, by prober: Prober) async -> Result<ConnectReport, LegError> {
    // The connection is opened as for an `http` origin, so that the transport stops after the TCP handshake.
    let origin = sample.target.origin
    return await sample.connect(Origin(.http, host: origin.host, port: origin.port), by: prober)
  }
}

/// The probe method `tls`, which completes a TCP handshake and a TLS handshake. The TLS handshake may resume
/// an earlier session if the connection is kept. For an `http` origin, the probe completes only the TCP
/// handshake.
struct TLSProbe: Probe {
  func take(_ sample: ProbeSample, by prober: Prober) async -> Result<ConnectReport, LegError> {
    await sample.connect(sample.target.origin, by: prober)
  }
}

extension ProbeSample {
  /// Opens a connection to the endpoint for an origin. If the time limit is the rest of the budget
  /// (`isShortened`), a timeout becomes an inconclusive failure, which does not count against the endpoint.
  fileprivate func connect(_ origin: Origin, by prober: Prober) async -> Result<ConnectReport, LegError> {
    do throws(LegError) {
      let endpoint = IPEndpoint(target.address, port: target.origin.port)
      return .success(
        try await prober.transport.connect(to: endpoint, of: origin, within: limit, keep: keepsConnection))
    } catch {
      let isExcused = isShortened && error.failure.isTimeout
      return .failure(LegError(error.failure, isInconclusive: error.isInconclusive || isExcused))
    }
  }
}

extension LegFailure {
  /// Whether the failure is a timeout.
  fileprivate var isTimeout: Bool { kind == .connectTimeout || kind == .tlsTimeout }
}
