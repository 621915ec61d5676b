import Testing

@testable import NetOptEngine

@Suite struct DescriptorTableTests {
  @Test("the table stores a value for each descriptor and lists the values in descriptor order")
  func storesValues() {
    var table = DescriptorTable<String>()
    table[7] = "seven"
    table[3] = "three"
    #expect(table[7] == "seven")
    #expect(table[3] == "three")
    #expect(Array(table.values) == ["three", "seven"])
  }

  @Test("a number without a stored value has no value", arguments: [Int32.min, -1, 0, 6, 8, Int32.max])
  func missingValues(_ number: Int32) {
    var table = DescriptorTable<String>()
    #expect(table[number] == nil)
    table[7] = "seven"
    #expect(table[number] == nil)
  }

  @Test("setting the value of a negative number does nothing")
  func negativeNumbers() async {
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

  @Test("removing a missing value takes no memory")
  func removesMissingValue() {
    var table = DescriptorTable<[UInt8]>()
    table[.max] = nil
    #expect(table.slots.isEmpty)
  }

  @Test("a value can be removed, set again and changed in place")
  func removesAndReplaces() {
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
