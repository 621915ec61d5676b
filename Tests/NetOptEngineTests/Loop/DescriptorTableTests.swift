import Testing

@testable import NetOptEngine

@Suite struct DescriptorTableTests {
  @Test func aDescriptorHasTheValueThatItWasGiven() {
    var table = DescriptorTable<String>()
    table[7] = "seven"
    table[3] = "three"
    #expect(table[7] == "seven")
    #expect(table[3] == "three")
    #expect(Array(table.values) == ["three", "seven"])
  }

  @Test(arguments: [Int32.min, -1, 0, 6, 8, Int32.max]) func anyOtherNumberHasNone(_ number: Int32) {
    var table = DescriptorTable<String>()
    #expect(table[number] == nil)
    table[7] = "seven"
    #expect(table[number] == nil)
  }

  @Test("setting the value of a negative number does nothing")
  func aNegativeNumberGetsNoValue() async {
    await #expect(processExitsWith: .success) {
      var table = DescriptorTable<String>()
      for number in [Int32.min, -2, -1] {
        table[number] = "none"
        #expect(table[number] == nil)
        table[number] = nil
      }
      #expect(Array(table.values).isEmpty)
    }
  }

  @Test("taking away what is not there takes no memory")
  func aValueThatIsNotThereIsTakenAway() {
    var table = DescriptorTable<[UInt8]>()
    table[.max] = nil
    #expect(table.slots.isEmpty)
  }

  @Test func aValueIsTakenAwayAndReplaced() {
    var table = DescriptorTable<String>()
    table[7] = "seven"
    table[7] = nil
    #expect(table[7] == nil)
    #expect(Array(table.values).isEmpty)
    table[7] = "again"
    table[7]?.append("!")
    #expect(table[7] == "again!")
  }
}
