package import Spool

extension Timestamp {
  /// `in 52s` or `now` as seen from `now`, for a person who reads it at once; `at 2026-11-21T03:07:02Z` without it, for
  /// a log.
  package func told(from now: Timestamp?) -> String {
    guard let now else { return "at \(self)" }
    return self <= now ? "now" : "in \(shortDuration(seconds - now.seconds))"
  }

  /// The same for the text of a time.
  static func told(_ text: String, from now: Timestamp?) -> String {
    Timestamp(text)?.told(from: now) ?? "at \(escaped(text))"
  }
}
