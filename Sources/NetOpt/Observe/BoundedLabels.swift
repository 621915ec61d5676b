/// Gives the values of a label numbers, to at most so many of them. A program may take host names and tags from
/// its input: they must fill neither the memory of the client nor that of the system that collects the metrics.
struct BoundedLabels<Value: Hashable & Sendable>: Sendable {
  /// The number of all values that got no number of their own.
  static var other: Int { 0 }

  /// The values by number, from 1.
  private(set) var values: [Value] = []
  private var numbers: [Value: Int] = [:]
  /// The value that was asked for last: most calls of a client go to one host.
  private var last: (value: Value, number: Int)?
  private let most: Int

  /// - Parameter most: how many values get numbers of their own.
  init(most: Int) { self.most = most }

  /// Returns the number of a value.
  mutating func number(of value: Value) -> Int {
    if let last, last.value == value { return last.number }
    guard let number = numbers[value] ?? add(value) else { return Self.other }
    last = (value, number)
    return number
  }

  private mutating func add(_ value: Value) -> Int? {
    guard values.count < most else { return nil }
    values.append(value)
    numbers[value] = values.count
    return values.count
  }

  /// The value with a number; `nil` for the number `other`.
  subscript(_ number: Int) -> Value? { number == Self.other ? nil : values[number - 1] }
}
