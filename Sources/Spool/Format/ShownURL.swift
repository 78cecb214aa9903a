/// A URL without user name, password and query, which may be secret, for those who show it and need none of its parts.
package func shownURL(_ url: String) -> String {
  let place = url.prefix { $0 != "?" && $0 != "#" }
  guard let authority = place.firstRange(of: "://")?.upperBound else { return String(place) }
  let end = place[authority...].firstIndex(of: "/") ?? place.endIndex
  guard let at = place[authority..<end].lastIndex(of: "@") else { return String(place) }
  return place[..<authority] + String(place[place.index(after: at)...])
}
