internal import Spool

/// The command line as the kernel gave it. File names are bytes; `CommandLine.arguments` and ArgumentParser have
/// replaced by U+FFFD what is no UTF-8.
enum RawArguments {
  /// The bytes of each of `arguments`, which stand on the command line in this order, perhaps behind `--option=`.
  static func bytes(of arguments: [String]) -> [[UInt8]] {
    var rest = all()[...]
    return arguments.map { argument in
      guard argument.unicodeScalars.contains("\u{FFFD}"),
        let index = rest.firstIndex(where: { String(decoding: value($0, argument), as: UTF8.self) == argument })
      else { return Array(argument.utf8) }
      defer { rest = rest[(index + 1)...] }
      return value(rest[index], argument)
    }
  }

  /// What stands behind `--option=`, unless all of it is `argument`.
  private static func value(_ bytes: [UInt8], _ argument: String) -> [UInt8] {
    guard bytes.starts(with: "--".utf8), String(decoding: bytes, as: UTF8.self) != argument,
      let equals = bytes.firstIndex(of: UInt8(ascii: "="))
    else { return bytes }
    return Array(bytes[(equals + 1)...])
  }

  private static func all() -> [[UInt8]] {
    let vector = CommandLine.unsafeArgv
    return (0..<Int(CommandLine.argc)).map { index in
      var bytes: [UInt8] = []
      var next = vector[index]
      while let byte = next?.pointee, byte != 0 {
        bytes.append(UInt8(bitPattern: byte))
        next = next?.advanced(by: 1)
      }
      return bytes
    }
  }
}
