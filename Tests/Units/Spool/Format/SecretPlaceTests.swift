import Testing

@testable import Spool

@Suite struct SecretPlaceTests {
  private func hidden(_ place: String, _ query: String? = nil) -> Resource {
    Resource(place: Resource.hidden(place), query: query)
  }

  @Test func `a secret path leaves its origin and a digest`() {
    let place = Resource.hidden("https://cdn.example:8443/t0ken/file")
    #expect(place.hasPrefix("https://cdn.example:8443/#") && place.utf8.count == 26 + 32 && !place.contains("t0ken"))
  }

  @Test func `it is compared like any other`() {
    let one = hidden("https://h/one/file", "a")
    #expect(one.relation(to: hidden("https://h/one/file", "a")) == .same)
    #expect(one.relation(to: hidden("https://h/one/file", "b")) == .otherQuery)
    #expect(one.relation(to: hidden("https://h/two/file", "a")) == .other)
    #expect(one.relation(to: hidden("https://i/one/file", "a")) == .other)
    // A job that got its `resolve:` line later.
    let plain = Resource(place: "https://h/one/file", query: "a")
    #expect(one.relation(to: plain) == .same && plain.relation(to: one) == .same)
    #expect(hidden("https://h/two/file").relation(to: plain) == .other)
  }
}
