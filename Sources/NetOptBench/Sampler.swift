package import NetOptCore

/// Takes samples: sends the request of a run to a target, reads the answer to its end, and says what that took.
package struct Sampler: Sendable {
  private let client: any BenchClient
  private var request: HTTPRequest

  /// Makes a sampler.
  ///
  /// - Parameter request: what is sent. Its routing and its use of connections are set for each sample,
  ///   redirects are not followed
  ///   and nothing is sent again: a sample is one exchange with one target.
  package init(_ client: any BenchClient, _ request: HTTPRequest) {
    self.client = client
    self.request = request
    self.request.options.maxRedirects = 0
    self.request.options.maxAttempts = 1
  }

  /// Takes one sample. Errors are samples too.
  ///
  /// - Returns: `nil` when the task was cancelled.
  package func sample(_ target: BenchTarget, _ connection: RequestOptions.ConnectionUse) async -> Sample? {
    var request = request
    request.options.routing = target.routing
    request.options.connection = connection
    do throws(NetOptError) {
      let response = try await client.execute(request)
      var chunks = response.body.makeAsyncIterator()
      while try await chunks.next() != nil {}
      if Task.isCancelled { return nil }
      return Sample(
        .answered(status: response.status), timings: response.timings, reused: response.reused,
        version: response.version, tls: response.tls)
    } catch {
      if Task.isCancelled || error.code == .cancelled { return nil }
      return Sample(.failed(SampleFailure(error)))
    }
  }
}

extension Block {
  /// How the block's requests use connections.
  package var connection: RequestOptions.ConnectionUse { self == .cold ? .fresh : .pooled }
}
