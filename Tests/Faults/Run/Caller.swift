import NetOptCore

/// Sends the requests of a cell with one client, netopt or curl.
protocol Caller: Sendable {
  /// The number of tasks that send requests concurrently.
  var lanes: Int { get }

  /// Sends one request or several at once, and returns their results when all have ended.
  ///
  /// - Parameter prefix: the start of the ids of these requests. Each call of `perform` gets another one.
  func perform(_ prefix: String) async throws -> [Call]
}

extension Duration {
  /// The time that a request of the matrix may take.
  static let deadline = Duration.seconds(2)
}
