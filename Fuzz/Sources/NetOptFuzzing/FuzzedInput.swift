/// A fuzz target for programs outside this package.
public struct FuzzedInput: Sendable {
  /// The names of the targets.
  public static let targets = FuzzTarget.allCases.map(\.rawValue)

  private let target: FuzzTarget

  /// Finds a target by its name; returns `nil` for an unknown name.
  public init?(target name: String) {
    guard let target = FuzzTarget(rawValue: name) else { return nil }
    self.target = target
  }

  /// Runs the target on an input. Ends the process with a message when a rule does not hold.
  public func run(_ input: UnsafeBufferPointer<UInt8>) {
    if let fault = target.fault(in: Array(input)) { fatalError("\(target.rawValue): \(fault)") }
  }

  /// Generates an input from a seed, for targets whose inputs need more structure than random changes keep;
  /// returns `nil` for other targets.
  public func made(from seed: UInt64) -> [UInt8]? { AnswerMaker.input(for: target, seed: seed) }
}
