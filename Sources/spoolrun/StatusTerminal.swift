internal import Spool
internal import CLinux
internal import Glibc
internal import SpoolStatus

extension Terminal {
  struct Size: Equatable {
    var columns: Int
    var rows: Int
  }

  /// The window's current size; nil if `descriptor` is no terminal.
  static func size(_ descriptor: Int32) -> Size? {
    var (columns, rows): (Int32, Int32) = (0, 0)
    guard spoolrun_terminal_size(descriptor, &columns, &rows) == 0 else { return nil }
    // Some terminals don't know their size, such as a serial line.
    return Size(
      columns: columns > 0 ? Int(columns) : number("COLUMNS") ?? 80, rows: rows > 0 ? Int(rows) : number("LINES") ?? 24)
  }

  /// Whether the cursor can be moved on this terminal.
  static func isCapable(_ descriptor: Int32) -> Bool {
    isatty(descriptor) == 1 && !["", "dumb"].contains(variable("TERM"))
  }

  /// Colours are used on a terminal, unless the user has switched them off (https://no-color.org).
  static func look(_ descriptor: Int32) -> Look {
    Look(isColored: isCapable(descriptor) && variable("NO_COLOR").isEmpty, isUnicode: isUnicode)
  }

  /// Whether the locale's encoding is UTF-8, by the variables that setlocale(3) reads, in its order.
  private static var isUnicode: Bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map { variable($0) }.first { !$0.isEmpty } ?? ""
    return ["utf-8", "utf8"].contains { locale.lowercasedASCII.utf8.contains($0.utf8) }
  }

  private static func variable(_ name: String) -> String { getenv(name).map { String(cString: $0) } ?? "" }
  private static func number(_ name: String) -> Int? { Int(variable(name)).flatMap { $0 > 0 ? $0 : nil } }

  /// Milliseconds of CLOCK_MONOTONIC.
  static func milliseconds() -> Int64 {
    var clock = timespec()
    clock_gettime(CLOCK_MONOTONIC, &clock)
    return Int64(clock.tv_sec) * 1000 + Int64(clock.tv_nsec) / 1_000_000
  }
}
