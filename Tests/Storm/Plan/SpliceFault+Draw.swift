import NetOptCore

extension SpliceFault {
  /// Draws the fault of the connection with this number; `nil` for none. About three of four connections have
  /// none.
  static func draw(seed: UInt64, _ number: Int) -> SpliceFault? {
    var random = SplitMix64(seed: seed, stream: 5, index: number)
    switch random.below(100) {
    // These faults hit the handshake or the first response.
    case ..<5: return SpliceFault(.reset, at: .serverBytes(random.number(in: 1...5000)))
    case ..<9: return SpliceFault(.reset, at: .serverBytes(random.number(in: 5000...200_000)))
    case ..<12: return SpliceFault(.reset, at: .clientBytes(random.number(in: 0...3000)))
    case ..<14: return SpliceFault(.reset, at: .clientBytes(random.number(in: 3000...200_000)))
    case ..<17: return SpliceFault(.reset, at: .idle(.milliseconds(random.number(in: 20...400))))
    case ..<19: return SpliceFault(.reset, at: .age(.milliseconds(random.number(in: 50...2000))))
    case ..<22: return SpliceFault(.close, at: .serverBytes(random.number(in: 3000...100_000)))
    case ..<24: return SpliceFault(.close, at: .idle(.milliseconds(random.number(in: 20...400))))
    case ..<26:
      let time = Duration.milliseconds(random.number(in: 50...400))
      return SpliceFault(.stall(time), at: .serverBytes(random.number(in: 1...50_000)))
    default: return nil
    }
  }
}
