import NetOptCore
import Testing

@testable import NetOptEngine

@Suite struct URLHandlesTests {
  @Test func parsesAURLOnce() throws {
    var handles = URLHandles()
    let one = try HTTPURL("https://api.test/one")
    let two = try HTTPURL("https://api.test/two?a=b")
    let first = try handles.handle(for: one)
    let again = try handles.handle(for: one)
    #expect(again === first)
    let second = try handles.handle(for: two)
    #expect(second !== first)
    let third = try handles.handle(for: one)
    #expect(third === first)
  }

  @Test func forgetsThemWhenThereAreTooMany() throws {
    var handles = URLHandles()
    let url = try HTTPURL("https://api.test/0")
    let first = try handles.handle(for: url)
    for number in 1...URLHandles.most { _ = try handles.handle(for: HTTPURL("https://api.test/\(number)")) }
    let again = try handles.handle(for: url)
    #expect(again !== first)
  }
}
