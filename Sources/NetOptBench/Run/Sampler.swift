package import NetOptCore

/// Takes samples: sends the run's request to a target over one client, reads the whole response, and records
/// the times.
package struct Sampler: Sendable {
  private let client: any BenchClient
  /// The task executor on which to take samples; `nil` for the default executor.
  var executor: (any TaskExecutor)? { client.executor }
  private let timeSource: any TimeSource
  /// The run's request, without redirects and retries.
  private var request: NetOptRequest

  /// Makes a sampler.
  ///
  /// - Parameter request: the request to send. The sampler follows no redirect and repeats no request,
  ///   because a sample is one exchange with one target. For each sample it sets the routing and the use of
  ///   connections.
  package init(
    _ client: any BenchClient, _ request: NetOptRequest, timeSource: any TimeSource = SystemTimeSource()
  ) {
    self.client = client
    self.timeSource = timeSource
    self.request = request
    self.request.options.maxRedirects = 0
    self.request.options.maxAttempts = 1
  }

  /// Takes one sample. A failed request gives a sample too.
  ///
  /// - Parameters:
  ///   - connection: whether the request opens a new connection or reuses one.
  ///   - due: the scheduled moment of the request, which may have passed; `nil` without a schedule.
  /// - Returns: the sample, or `nil` when the task was cancelled.
  package func sample(
    _ target: BenchTarget, _ connection: RequestOptions.ConnectionUse, due: MonotonicInstant? = nil
  ) async -> Sample? {
    let started = timeSource.now()
    guard var sample = await exchange(target, connection, started) else { return nil }
    if let due { sample.lag = max(.zero, started - due) }
    return sample
  }

  /// Sends the request and reads the response. Returns `nil` when the task was cancelled.
  ///
  /// - Parameter started: the start of the request, from which the time until a failure counts.
  private func exchange(
    _ target: BenchTarget, _ connection: RequestOptions.ConnectionUse, _ started: MonotonicInstant
  ) async -> Sample? {
    var request = request
    request.options.routing = target.routing
    request.options.connection = connection
    do throws(NetOptError) {
      let response = try await client.execute(request)
      var chunks = response.body.makeAsyncIterator()
      while try await chunks.next() != nil {}
      if Task.isCancelled { return nil }
      var sample = Sample(
        .answered(status: response.status), timings: response.timings, reused: response.reused,
        version: response.version, tls: response.tls)
      sample.socket = response.socket
      return sample
    } catch {
      if Task.isCancelled || error.code == .cancelled { return nil }
      var sample = Sample(.failed(SampleFailure(error)))
      sample.failedAfter = timeSource.now() - started
      return sample
    }
  }
}

extension Block {
  /// How the requests of the block use connections.
  package var connection: RequestOptions.ConnectionUse { self == .cold ? .fresh : .pooled }
}
