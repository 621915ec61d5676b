/// A fuzz target, in a form that the package of the fuzzer can use.
public struct FuzzedInput: Sendable {
  /// The names of the targets.
  public static let targets = FuzzTarget.allCases.map(\.rawValue)

  private let target: FuzzTarget

  /// Finds a target by its name; returns `nil` for an unknown name.
  public init?(target name: String) {
    guard let target = FuzzTarget(rawValue: name) else { return nil }
    self.target = target
  }

  /// Runs the target on an input. When the input breaks a rule, ends the process with a message.
  public func run(_ input: UnsafeBufferPointer<UInt8>) {
    if let fault = target.fault(in: Array(input)) { fatalError("\(target.rawValue): \(fault)") }
  }

  /// Generates an input from a seed. Returns `nil` for a target that does not need this: libFuzzer's random
  /// changes to its inputs keep enough of their structure.
  public func made(from seed: UInt64) -> [UInt8]? { AnswerMaker.input(for: target, seed: seed) }
}
