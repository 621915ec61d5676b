import NetOptCore

/// Who sends the requests of a cell.
protocol Caller: Sendable {
  /// How many tasks send requests beside one another.
  var lanes: Int { get }

  /// Sends requests, and returns what became of them when all have ended.
  func perform(_ prefix: String) async throws -> [Call]
}

extension Duration {
  /// How long a request may take.
  static let deadline = Duration.seconds(2)
}
