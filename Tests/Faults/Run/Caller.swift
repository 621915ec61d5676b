import NetOptCore

/// A client that sends the requests of a cell.
protocol Caller: Sendable {
  /// The number of tasks that send requests concurrently.
  var lanes: Int { get }

  /// Sends requests, and returns their results when all have ended.
  func perform(_ prefix: String) async throws -> [Call]
}

extension Duration {
  /// The time that a request may take.
  static let deadline = Duration.seconds(2)
}
