/// A fuzz target as a program outside of this package runs it.
public struct FuzzedInput: Sendable {
  /// The names of the targets.
  public static let targets = FuzzTarget.allCases.map(\.rawValue)

  private let target: FuzzTarget

  /// Finds a target by its name; `nil` when there is none of that name.
  public init?(target name: String) {
    guard let target = FuzzTarget(rawValue: name) else { return nil }
    self.target = target
  }

  /// Runs the target on an input. Ends the process, with a message, when a rule does not hold.
  public func run(_ input: UnsafeBufferPointer<UInt8>) {
    if let fault = target.fault(in: Array(input)) { fatalError("\(target.rawValue): \(fault)") }
  }

  /// An input that follows from a seed, for targets whose inputs have more of a form than changes by chance keep; `nil` for others.
  public func made(from seed: UInt64) -> [UInt8]? { AnswerMaker.input(for: target, seed: seed) }
}
