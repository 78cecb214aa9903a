internal import Glibc

/// What a child process writes: its output for the log, and perhaps its standard output apart from that.
struct ChildPipes {
  private struct Stream {
    let descriptor: Int32
    let limit: Int
    var bytes: [UInt8] = []
    var hasEnded = false
  }

  /// How many reads empty full pipes (pipe(7)).
  static let mostLeft = 2 * 64 * 1024 / bufferSize
  private static let bufferSize = 4096

  private var streams: [Stream]
  private var buffer = [UInt8](repeating: 0, count: bufferSize)

  /// - Parameters:
  ///   - answer: nil if standard output is part of the output.
  ///   - limit: the most bytes to keep of each.
  init(output: Int32, answer: Int32?, limit: Int) {
    streams = [Stream(descriptor: output, limit: limit)]
    // One byte more shows that it is too long.
    if let answer { streams.append(Stream(descriptor: answer, limit: limit + 1)) }
  }

  var output: [UInt8] { streams[0].bytes }
  var answer: [UInt8] { streams.count > 1 ? streams[1].bytes : [] }

  /// Waits for some of either, and reads it.
  /// - Returns: whether there was any.
  mutating func take(milliseconds: Int64) -> Bool {
    if streams.allSatisfy(\.hasEnded) { return false }
    // poll(2) ignores a negative descriptor.
    var polled = streams.map { pollfd(fd: $0.hasEnded ? -1 : $0.descriptor, events: Int16(POLLIN), revents: 0) }
    guard poll(&polled, nfds_t(polled.count), Int32(clamping: milliseconds)) > 0 else { return false }
    var hasAny = false
    for index in streams.indices where polled[index].revents != 0 {
      let count = read(streams[index].descriptor, &buffer, buffer.count)
      if count > 0 {
        let room = streams[index].limit - streams[index].bytes.count
        streams[index].bytes += buffer[..<count].prefix(room)
        hasAny = true
      } else if count == 0 {
        streams[index].hasEnded = true
      }
    }
    return hasAny
  }

  func close() { for stream in streams { _ = Glibc.close(stream.descriptor) } }
}
